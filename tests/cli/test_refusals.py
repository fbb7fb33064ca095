"""Commands that cannot do what is asked say why in one sentence, and never with a traceback."""

import pytest
from howsure_command import Done, howsure
from running_service import DIGITS

LOGITS = ("calibrate", DIGITS / "calibration_logits.csv")
POINT, RISK = ("operating-point", "logits"), ("--max-risk", "0.1")
SIGNED = ("--author", "A", "--reason", "R")
SERVE = ("serve", "--port", "0")
EVERYWHERE = "0.0.0.0"  # noqa: S104 - what is to be refused
NO_SUCH_TENANT = "there is no tenant 'nobody'"
BEYOND = ("tenants", "limit", "default", "--jobs", str(2**63))
NO_SERVER = "postgresql+psycopg://u:secret@127.0.0.1:9/x"
SCOPES = "--scope: expected predict, read, write, admin"
FOR_OTHERS = (
    "is reachable from other machines and there is no API key",
    *("howsure keys create", "127.0.0.1", "HOWSURE_ALLOW_ANONYMOUS=1"),
)
# Words, settings, and parts of the sentence.
IN_A_FOLDER = [
    (("list",), {"PORT": "abc"}, "HOWSURE_PORT: expected an integer from 0 to 65535"),
    (("list",), {"DEVICE": "cuda:0,cuda:0"}, "HOWSURE_DEVICE: expected each device once"),
    (("list",), {"DATA_DIR": "/dev/null/x"}, "HOWSURE_DATA_DIR"),
    (("serve", "--port", "99999"), {}, "--port: expected an integer from 0 to 65535"),
    ((*SERVE, "--host", "999.1.1.1"), {}, "choose another --host"),
    ((*SERVE, "--host", EVERYWHERE), {}, EVERYWHERE, *FOR_OTHERS),
    ((*SERVE, "--host", "::"), {}, "::", *FOR_OTHERS),
    (SERVE, {"DATABASE_URL": "nonsense"}, "HOWSURE_DATABASE_URL: "),
    (SERVE, {"DATABASE_URL": NO_SERVER}, "see HOWSURE_DATABASE_URL"),
    (("worker", "--port", "0"), {"WORKERS": "0"}, "HOWSURE_WORKERS: a worker runs 1 job or more"),
    (("keys", "create", "a b"), {}, "NAME: expected"),
    (("keys", "create", "job", "--scope", "all"), {}, SCOPES),
    (("keys", "create", "job", "--days", "0"), {}, "--days: expected 1 to 3650"),
    (("keys", "create", "job", "--tenant", ""), {}, "--tenant: expected"),
    (("keys", "revoke", "nobody"), {}, "there is no key 'nobody'"),
    (("keys", "rotate", "nobody"), {}, "there is no key 'nobody'"),
    (("tenants", "limit", "nobody", "--jobs", "1"), {}, NO_SUCH_TENANT),
    (("tenants", "limit", "default"), {}, "at least one limit"),
    (BEYOND, {}, "expected a whole number from 0"),
    (("audit", "--result", "maybe"), {}, "--result: expected accepted or refused"),
]
ON_A_SERVICE = [
    (("predict", "nobody", DIGITS / "README.md"), "JSON"),
    (("predict", "digits", "jpeg-without-extension"), "takes no pictures"),
    (("predict", "digits", "jpeg.json"), "takes no pictures"),
    (("predict", "digits", "animated.gif"), "animated.gif is GIF; expected rows as JSON, .csv"),
    (("predict", "digits", "rows.txt"), "rows.txt is not JSON: Expecting value"),
    (("predict", "digits", "columns.json"), "expected a list of rows or a /predict body: write"),
    (("predict", "digits", "lines.json"), "several JSON values, as JSON lines: write a list of"),
    (("predict", "nobody", DIGITS / "calibration.npz"), "to a file: -o answers.parquet"),
    (("report", "nobody"), "nobody"),
    (("report", "logits", "--open", "--format", "csv"), "--open shows html, not csv"),
    (("report", "logits", "--format", "csv", "-o", "/nowhere/report.csv"), "cannot write"),
    (("bins", "nobody", "--format", "parquet"), "use --output FILE"),
    (("import", DIGITS / "request.json"), "howsure.bins/1"),
    (("delete", "nobody", "--yes"), "does not name a version"),
    (("delete", "logits#@1", "--yes"), "logits#@1"),
    (("calibrate", DIGITS / "calibration.npz"), "model"),
    ((*LOGITS, "--bins", "many"), "bins"),
    ((*LOGITS, "--config", "{"), "JSON"),
    ((*LOGITS, "--config", "list.json"), "expected a JSON object"),
    ((*LOGITS, "--config", "deep.json"), "nested too deep"),
    (("list", "--url", "http://127.0.0.1:9"), "no answer"),
    (("list", "--url", "http://a:b"), "--url"),
    (
        ("list", "--url", "localhost:8000"),
        "--url: expected an address such as http://127.0.0.1:8000",
    ),
    (("predict", "logits", "row.json", "--json", "-o", "x.csv"), "choose one"),
    (("predict", "logits", "row.json", "--restart"), "need -o FILE"),
    (("predict", "digits", "row.json"), "no column names"),
    ((*POINT, "--activate"), "--activate needs --max-risk, --coverage or --threshold and --author"),
    ((*POINT, *RISK, "--activate", "--author", "A"), "--activate needs --reason"),
    ((*POINT, *RISK, "--activate", "--withdraw"), "choose one"),
    ((*POINT, *RISK, "--coverage", "0.5"), "--max-risk and --coverage: choose one"),
    ((*POINT, *RISK, "--author", "A"), "--author belongs to --activate or --withdraw"),
    ((*POINT, "--volume", "10"), "--volume belongs to a preview (--max-risk, --coverage or"),
    ((*POINT, "--withdraw"), "--withdraw needs --author and --reason"),
    ((*POINT, "--withdraw", *SIGNED), "has no active operating point"),
    (
        (*POINT, "--max-risk", "0.00001", "--activate", *SIGNED),
        "No threshold passes the test for an error rate of at most 0.001 %",
    ),
    ((*POINT, "--max-risk", "2"), "query.max_risk: Input should be less than 1"),
]


def check(done: Done, *parts: str) -> None:
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
    sentence = " ".join(done.stderr.split())
    assert all(part in sentence for part in parts), sentence


@pytest.mark.parametrize("case", IN_A_FOLDER, ids=lambda case: " ".join(case[0]))
def test_in_a_folder(tmp_path, case) -> None:
    words, settings, *parts = case
    variables = {f"HOWSURE_{name}": value for name, value in settings.items()}
    check(howsure(*words, folder=tmp_path, **variables), *parts)


@pytest.mark.parametrize(("arguments", "part"), ON_A_SERVICE)
def test_on_a_service(tmp_path, monkeypatch, command, arguments, part: str) -> None:
    (tmp_path / "list.json").write_text("[1]")
    for name in ("jpeg-without-extension", "jpeg.json"):
        (tmp_path / name).write_bytes(b"\xff\xd8\xff\xe0")
    (tmp_path / "animated.gif").write_bytes(b"GIF89a\xff")
    (tmp_path / "rows.txt").write_text("a,b\n1,2\n")
    (tmp_path / "deep.json").write_text("[" * 10_000)
    (tmp_path / "columns.json").write_text('{"age": {"0": 41, "1": 42}}')
    (tmp_path / "lines.json").write_text('{"age": 41}\n{"age": 42}\n')
    (tmp_path / "row.json").write_text('{"age": 41}')
    monkeypatch.chdir(tmp_path)
    check(command(*arguments, status=1), part)


def test_a_model_in_the_place_of_the_set(command) -> None:
    for words in ([DIGITS / "model.onnx"], [DIGITS / "calibration.npz", DIGITS / "model.onnx"]):
        refused = command("calibrate", *words, status=2)
        assert "ONNX file" in refused.stderr
