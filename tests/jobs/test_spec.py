"""Job files are checked before anything runs, and each complaint names the file and the key."""

import inspect
import json
import pathlib

import pytest

from dforest.errors import SpecError
from dforest.estimators.forests import DistanceForest
from dforest.jobs.spec import KINDS, ForestSpec, job_schema, read_job

SHIPPED = sorted((pathlib.Path(__file__).parents[2] / "pipelines").glob("*.yaml"))
LINKS = "kind: link_prediction\noutput: out\npoints: words.npz\ngraph: links.npz\n"


@pytest.fixture
def job_file(tmp_path):
    """Return a function that writes a job file."""

    def write(text):
        path = tmp_path / "job.yaml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_job_files__are_right_and_their_inputs_are_there(path):
    job = read_job(path)
    assert all(place.exists() for key in job.inputs if (place := getattr(job, key)) is not None)


def test_distance_forest_yaml__shows_every_key_of_the_forest_and_its_default():
    path = next(path for path in SHIPPED if path.stem == "distance_forest")
    text = path.read_text()
    for name, field in ForestSpec.model_fields.items():
        default = json.dumps(field.default).strip('"')
        line = next(line for line in text.splitlines() if line.strip().startswith(f"{name}:"))
        assert line.endswith(f"[{default}]")


def test_forest_keys__are_the_parameters_of_the_estimator_with_its_defaults():
    parameters = dict(inspect.signature(DistanceForest).parameters)
    for elsewhere in ("distance", "warm_start", "n_jobs", "random_state"):
        parameters.pop(elsewhere)
    assert {name: p.default for name, p in parameters.items()} == ForestSpec().model_dump()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("respons: 3", "unknown key 'respons'; the nearest known key is 'response'"),
        ("forest: {n_estimator: 3}", "forest: unknown key 'n_estimator'; the nearest known key is"),
        ("forest: {zzz: 3}", "forest: unknown key 'zzz'; known keys are n_estimators, "),
        ("response: {graph_spektrum: 3}", "response: unknown key 'graph_spektrum'; the nearest"),
        ("forest: 3", "forest: must be keys and values, got 3"),
        ('seed: "5"', "seed: must be a valid integer, got '5'"),
        ("seed: true", "seed: must be a valid integer, got True"),
        ("threads: 0", "threads: must be greater than or equal to 1, got 0"),
        ("forest: {n_estimators: 2.5}", "forest.n_estimators: must be a valid integer, got 2.5"),
        ("forest: {n_estimators: 0}\nthreads: 0", r"got 0 \(and 1 more\)"),
        ("seed: 1\nseed: 2", "line 6: key 'seed' is given twice; keep one"),
        ("a: [", "line 5: no YAML"),
    ],
)
def test_read_job__names_file_and_key(job_file, more, complaint):
    path = job_file(LINKS + more)
    with pytest.raises(SpecError, match=complaint) as caught:
        read_job(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds nothing, not keys and values"),
        ("- 1", "holds a list, not keys and values"),
        ("output: out", "kind: is missing; there are link_prediction, distance_forest"),
        ("kind: links", "kind: 'links' is not known; there are link_prediction"),
        ("kind: link_prediction", r"output: is missing; it has no default \(and 2 more\)"),
        ("kind: distance_forest\noutput: a\npoints: b", "distance 'precomputed' needs 'matrix'"),
        (
            "kind: distance_forest\noutput: a\npoints: b\ndistance: indicator\ngraph: c",
            "distance 'indicator' takes no 'graph'",
        ),
    ],
)
def test_read_job__refuses_what_is_no_job(job_file, text, complaint):
    with pytest.raises(SpecError, match=complaint):
        read_job(job_file(text))


def test_read_job__refuses_a_missing_file(tmp_path):
    with pytest.raises(SpecError, match=r"no\.yaml: cannot be read: No such file"):
        read_job(tmp_path / "no.yaml")


def test_set__lays_yaml_typed_values_over_the_file(job_file):
    path = job_file(LINKS + "forest: {n_estimators: 7, bootstrap: true}")
    settings = ["forest.bootstrap=false", "evaluate.non_links=1e1", "response.graph_spectrum=8"]
    job = read_job(path, [*settings, "forest.max_depth=null"])
    assert (job.forest.n_estimators, job.forest.bootstrap, job.forest.max_depth) == (7, False, None)
    assert job.evaluate.non_links == 10.0
    assert job.response.graph_spectrum == 8


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("seed", "--set seed: write key=value"),
        ("=3", "--set =3: write key=value"),
        ("seed=x", "--set seed=x: seed: must be a valid integer, got 'x'"),
        ("forest.n_trees=3", "forest: unknown key 'n_trees'; known keys are"),
        ("kind.a=3", "--set kind.a=3: 'kind' is text and has no keys"),
        ("seed=[", r"--set seed=\[: line 1: no YAML"),
    ],
)
def test_set__names_the_setting_that_is_wrong(job_file, setting, complaint):
    with pytest.raises(SpecError, match=complaint):
        read_job(job_file(LINKS), [setting])


def test_paths__count_from_the_file_or_from_here_when_said(job_file, monkeypatch, tmp_path):
    path = job_file(LINKS)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    job = read_job(path, ["output=results", "graph=/data/g.npz"])
    assert job.points == tmp_path / "words.npz"
    assert job.output == tmp_path / "here" / "results"
    assert job.graph == pathlib.Path("/data/g.npz")


def test_job_schema__describes_every_key_of_every_kind():
    schema = json.loads(json.dumps(job_schema()))
    for model in KINDS.values():
        said = schema["$defs"][model.__name__]
        assert set(said["properties"]) == set(model.model_fields)
        assert said["additionalProperties"] is False
        described = {key for key, value in said["properties"].items() if "description" in value}
        assert described >= set(model.model_fields) - {"kind", "forest", "evaluate"}
