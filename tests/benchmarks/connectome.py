"""Links of neurons never seen: the mushroom-body connectome, 5-fold over neurons.

Trees grow on the training neurons' adjacency rows, their leaves are tabulated on links. A link is
scored by minus its distance; "unseen-seen" pairs have one neuron in training, "unseen" none. By the
authors' R code, with adjacency as similarity: AUC .904, average precision .721 (unseen-seen).
"""

import numpy as np
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

import dforest as df
from benchmarks.data import found, made_up_network, mushroom_body
from benchmarks.harness import Row, timed

TREES = {"toy": 20, "full": 200}
SEEDS = {"toy": 1, "full": 3}  # of the folds and of the forests
GOAL = {"AUC": 0.92, "AP": 0.78}  # of our forest, unseen-seen


def link_scores(linked, score) -> dict[str, float]:
    """Area under the ROC curve and average precision of one block of pairs."""
    linked, score = np.ravel(linked), np.ravel(score)
    return {"AUC": roc_auc_score(linked, score), "AP": average_precision_score(linked, score)}


def type_densities(X, links, n_trees, seed):
    """The block model: a pair's score is the share of linked pairs among its two types."""
    types, code = np.unique(X, axis=0, return_inverse=True)
    member = np.eye(len(types))[code]
    sizes = member.sum(axis=0)
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    density = member.T @ links @ member / np.maximum(pairs, 1)

    def score(XA, XB):
        seats = [(Q[:, None] == types).all(axis=2).argmax(axis=1) for Q in (XA, XB)]
        return density[np.ix_(*seats)]

    return score


def cart_leaves(X, links, n_trees, seed):
    """scikit-learn's multi-output forest on adjacency rows (proposition 2), links in its leaves."""
    model = RandomForestRegressor(
        n_trees, min_samples_leaf=2, max_features="sqrt", random_state=seed
    )
    home = model.fit(X, links.astype(float)).apply(X)

    def score(XA, XB):
        total = np.zeros((len(XA), len(XB)))
        for t, (a, b) in enumerate(zip(model.apply(XA).T, model.apply(XB).T, strict=True)):
            sides = [(at[:, None] == home[:, t]).astype(float) for at in (a, b)]
            sums = sides[0] @ links @ sides[1].T
            total += sums / np.outer(*(side.sum(axis=1) for side in sides))
        return total / n_trees

    return score


def forest(X, links, n_trees, seed):
    """Ours: grown on adjacency rows, leaves refitted on the graph."""
    model = df.DistanceForest(
        "half_squared",
        n_estimators=n_trees,
        min_samples_leaf=2,
        self_pairs=False,
        random_state=seed,
    ).fit(X, links.astype(float))
    graph = df.Graph(sparse.csr_array(links.astype(float)))
    model.refit_leaves(X, graph, distance="graph")
    return lambda XA, XB: -model.pairwise(XA, XB)


BASELINES = {"types alone": type_densities, "scikit-learn's trees": cart_leaves}
FORESTS = {"DistanceForest": forest}


def judge(network, X, learn, n_trees: int, seed: int) -> Row:
    """Means over the 5 folds of one seed."""
    folds: list[dict[str, float]] = []
    for train, test in KFold(5, shuffle=True, random_state=seed).split(X):
        links = network.links[np.ix_(train, train)]
        spent, score = timed(learn, X[train], links, n_trees, seed)
        seen = link_scores(network.links[np.ix_(test, train)], score(X[test], X[train]))
        pairs = np.triu_indices(len(test), 1)
        among = network.links[np.ix_(test, test)][pairs]
        unseen = link_scores(among, score(X[test], X[test])[pairs])
        folds.append({"s per fold": spent})
        folds[-1] |= {f"{figure} unseen-seen": found for figure, found in seen.items()}
        folds[-1] |= {f"{figure} unseen": found for figure, found in unseen.items()}
    return {name: float(np.mean([fold[name] for fold in folds])) for name in folds[0]}


def compare(learners: dict, scale: str) -> list[Row]:
    """One row for each way to learn: means over seeds, and the least of each goal's figure."""
    is_real = scale == "full" and found("mb") is not None
    network = mushroom_body() if is_real else made_up_network(60)
    n_types = len(np.unique(network.types))
    rows: list[Row] = []
    for method, learn in learners.items():
        X = network.X[:, :n_types] if learn is type_densities else network.X
        judged = [judge(network, X, learn, TREES[scale], seed) for seed in range(SEEDS[scale])]
        rows.append({"method": method})
        rows[-1] |= {name: float(np.mean([j[name] for j in judged])) for name in judged[0]}
        for figure, goal in GOAL.items():
            least = min(j[f"{figure} unseen-seen"] for j in judged)
            rows[-1][f"least {figure} (goal {goal})"] = least
    return rows


def run(scale: str) -> list[Row]:
    return compare(BASELINES | FORESTS, scale)
