from weft.kinds.cells import canonical, divide


def test_the_same_label_in_another_spelling() -> None:
    assert canonical(" 1.0") == canonical("1") == "1"
    assert canonical("good ") == "good"
    assert canonical("0.5") == "0.5"
    assert canonical("nan") == "nan"


def test_several_labels_in_one_cell() -> None:
    assert divide("plot; acting") == divide("plot,acting") == divide("plot|acting") == divide('["plot", "acting"]')
    assert divide("") == divide("[]") == []
    assert divide("[draft") == ["[draft"]


def test_lists_as_python_writes_them() -> None:
    assert divide("['plot', 'acting']") == ["plot", "acting"]
    assert divide("[1, 2]") == ["1", "2"]
    assert divide("[plot, acting]") == ["[plot", "acting]"]
