"""Workers optimise a study side by side, which is then read, copied and deleted: study.py URL"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import optuna
from optuna.storages import RDBStorage
from sqlalchemy.exc import OperationalError

TRIALS = 12
WORKERS = 3
ATTEMPTS_MAX = 40


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    trial.set_user_attr("seen", {"x": x})
    for step in range(3):
        trial.report(x * x + step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x * x + (kind == "b")


def work(url: str) -> int:
    """Run some trials in a storage of its own. Two workers may take the same trial that waits: then
    one of them is told to run its transaction again (40001), and asks anew."""
    study = optuna.load_study(study_name="walk", storage=RDBStorage(url))
    ran = 0
    for _ in range(ATTEMPTS_MAX):
        try:
            study.optimize(objective, n_trials=1)
        except optuna.exceptions.StorageInternalError as error:
            if not is_to_run_again(error):
                raise
            continue
        ran += 1
        if ran == TRIALS // WORKERS:
            return len(study.trials)
    raise SystemExit(f"{ran} trials in {ATTEMPTS_MAX} attempts")


def is_to_run_again(error: BaseException) -> bool:
    """Whether what a storage failed with is an error of serialization."""
    cause = error.__cause__
    return isinstance(cause, OperationalError) and getattr(cause.orig, "sqlstate", "") == "40001"


url = sys.argv[1].replace("postgres://", "postgresql+psycopg://").partition("?")[0]
storage = RDBStorage(url, heartbeat_interval=60)
made = optuna.create_study(storage=storage, study_name="walk")
made.enqueue_trial({"x": 0.5, "kind": "a"})
with ThreadPoolExecutor(WORKERS) as workers:
    list(workers.map(work, [url] * WORKERS))
optuna.copy_study(
    from_study_name="walk", from_storage=storage, to_storage=storage, to_study_name="b"
)
names = sorted(each.study_name for each in optuna.get_all_study_summaries(storage))
trials = optuna.load_study(study_name="b", storage=storage).trials
assert [each.number for each in trials] == list(range(TRIALS)), "each number is given once"
assert optuna.load_study(study_name="walk", storage=storage).best_value <= 0.25
for name in names:
    optuna.delete_study(study_name=name, storage=storage)
print("studies", names, "trials", len(trials), "left", len(optuna.get_all_study_names(storage)))
