"""From a data frame to a data frame, as in a notebook: every `# %%` is a cell.

Run it as `python docs/examples/notebook.py [BODY]`, or open it in an editor that knows cells. BODY defaults to
packaged:minilm-l6. It writes into the folder `runs`.
"""

# %% Rows, as a query or a spreadsheet gives them
import sys

import pandas as pd

import weft

reviews = pd.DataFrame(
    {
        "review": [
            "The zip broke the first time I used it",
            "Best present I have given in years",
            "Two weeks late and the wrong colour",
            "I would buy this again tomorrow",
            "It stopped working after a day",
            "Lovely fabric, and it fits",
            "My parcel was left in the rain",
            "My children will not take it off",
        ]
        * 3,
        "verdict": ["bad", "good"] * 12,
        "stars": [1, 5, 2, 5, 1, 4, 2, 5] * 3,
    }
)
train, dev = reviews[:16], reviews[16:]

# %% A recipe as a dictionary: columns instead of files
recipe = {
    "name": "reviews",
    "body": sys.argv[1] if len(sys.argv) > 1 else "packaged:minilm-l6",
    "epochs": 2,
    "max_length": 32,
    "tasks": {
        "verdict": {
            "kind": "classification",
            "data": {"text": "review", "label": "verdict"},
            "loss": {"use": "focal:FocalConfig", "gamma": 2.0},  # focal.py lies beside this file
        },
        "stars": {"kind": "regression", "range": [1, 5], "data": {"text": "review", "label": "stars"}},
    },
}

# %% Train. In a notebook this shows a progress bar.
splits = {"train": train, "dev": dev}
data = {"verdict": splits, "stars": splits}
model = weft.train(recipe, "runs/reviews", data=data, steps=4, trust_code=True)  # a loss of one's own is code that runs
print(model)

# %% Scores, and what the run logged: the last line of a cell is shown as a table
print(model.evaluate())
run = weft.open_run("runs/reviews")
print(run)

# %% Answers beside the rows. The columns `verdict` and `stars` of the input become `input_...`.
answered = model.predict_frame(dev)
print(answered[["review", "input_verdict", "verdict", "verdict_score", "stars"]].to_string())
print(model.predict("verdict", "It fell apart"))
