"""Masked-language modelling on one's own texts: gives a body that recipes start from."""
