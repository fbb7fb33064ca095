import os

import pytest

from service.runner.devices import cgroup_quota, usable_cpus


def test_no_more_than_this_process_may_run_on():
    assert 1 <= usable_cpus() <= len(os.sched_getaffinity(0))


def quotas(root, **texts):
    for folder, text in texts.items():
        path = root.joinpath(*folder.split("_"))
        path.mkdir(parents=True, exist_ok=True)
        (path / "cpu.max").write_text(text)


def test_the_least_quota_above_a_group_counts(tmp_path):
    quotas(tmp_path, a="150000 100000\n", a_b="max 100000\n", a_b_c="400000 100000\n")
    assert cgroup_quota(tmp_path, "/a/b/c") == 1.5
    assert cgroup_quota(tmp_path, "/a/b") == 1.5
    assert cgroup_quota(tmp_path, "/other") is None


def test_a_container_sees_its_quota_at_the_root(tmp_path):
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert cgroup_quota(tmp_path, "/") == 0.5


@pytest.mark.parametrize("text", ["", "max", "a b", "1 2 3"])
def test_what_cannot_be_read_sets_no_quota(tmp_path, text):
    (tmp_path / "cpu.max").write_text(text)
    assert cgroup_quota(tmp_path, "") is None
