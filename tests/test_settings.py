"""Settings: read in one place, checked before anything opens, and each one documented."""

import re

import pytest

from vskill_core.errors import InvalidSettings
from vskill_platform.setting_facts import describe_settings
from vskill_platform.setting_values import shown_location
from vskill_platform.settings import (
    CHOSEN,
    GONE,
    SECRETS,
    Settings,
    check_settings,
    describe_unmet,
    load_settings,
)
from vskill_platform.tiers.pool import WAIT_S
from vskill_scan.limits import DEFAULT_LIMITS


def test_no_variables_at_all_give_the_embedded_defaults():
    settings = load_settings({"PATH": "/bin", "HOME": "/"})
    assert settings == Settings()
    assert settings.store == settings.broker == "sqlite:data/vskill.db"
    assert settings.blobs == "files:data/blobs"
    assert (settings.port, settings.max_batch_size, settings.max_concurrency) == (8080, 3, 10)


def test_everything_on_disk_follows_the_data_folder():
    settings = load_settings({"VSKILL_DATA_DIR": "/srv/skills"})
    assert settings.store == "sqlite:/srv/skills/vskill.db"
    assert settings.blobs == "files:/srv/skills/blobs"


def test_a_store_in_memory_keeps_nothing_on_disk():
    settings = load_settings({"VSKILL_STORE": "memory:"})
    assert (settings.broker, settings.blobs) == ("memory:", "memory:")


def test_a_given_location_is_not_replaced():
    settings = load_settings({"VSKILL_STORE": "memory:", "VSKILL_BLOBS": "files:/srv/blobs"})
    assert settings.blobs == "files:/srv/blobs"


def test_values_are_read_by_their_type():
    digests = ["a" * 64, "b" * 64]
    settings = load_settings(
        {"VSKILL_PORT": " 0 ", "VSKILL_LOG_FORMAT": "json", "VSKILL_KNOWN_BAD_DIGESTS": ", ".join(digests)}
    )
    assert settings.port == 0
    assert settings.log_format == "json"
    assert settings.known_bad_digests == tuple(digests)


def test_the_variables_of_the_client_vskill_are_not_ours_to_refuse():
    """The install box tells people to export the first two; the third is of the client's companion."""
    names = ("VSKILL_API_BASE", "VSKILL_API_URL", "VSKILL_PLATFORM_URL")
    there = dict.fromkeys(names, "http://127.0.0.1:8080")
    assert load_settings(there) == load_settings({})


@pytest.mark.parametrize(
    ("name", "near"), [("VSKILL_PRT", "VSKILL_PORT"), ("VSKILL_STORAGE", "VSKILL_STORE")]
)
def test_D2_an_unknown_variable_is_refused_with_the_nearest_known_one(name, near):
    with pytest.raises(InvalidSettings, match=f"no setting {name}; the nearest is {near}"):
        load_settings({name: "1"})


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("VSKILL_PORT", "http", "a port number from 0 to 65535"),
        ("VSKILL_PORT", "70000", "a port number from 0 to 65535"),
        ("VSKILL_PORT", "", "a port number"),
        ("VSKILL_MAX_CONCURRENCY", "0", "a whole number from 1 to 1000"),
        ("VSKILL_JUDGE_BUDGET_MS", "30s", "a whole number of milliseconds"),
        ("VSKILL_LOG_LEVEL", "loud", "debug or info or warning or error"),
        ("VSKILL_KNOWN_BAD_DIGESTS", "a" * 63, "64 characters of 0-9 and a-f"),
        ("VSKILL_DATA_DIR", " ", "a folder's path"),
    ],
)
def test_a_bad_value_is_refused_by_name_with_the_fix(name, value, fix):
    with pytest.raises(InvalidSettings, match=fix) as caught:
        load_settings({name: value})
    assert caught.value.message.startswith(f"{name} is {value!r}")
    assert caught.value.details["setting"] == name


def test_B2_budgets_that_do_not_nest_are_refused_with_both_names():
    with pytest.raises(
        InvalidSettings, match="judge_budget_ms is 60000 and must be less than submission_bud"
    ):
        check_settings(Settings(judge_budget_ms=60_000, submission_budget_ms=55_000))


@pytest.mark.parametrize("name", GONE)
def test_a_setting_that_is_gone_is_named_with_what_to_do(name):
    with pytest.raises(InvalidSettings, match=f"{name} is no setting any more: ") as caught:
        load_settings({name: "1"})
    assert GONE[name] in caught.value.message and caught.value.details["setting"] == name


def test_no_setting_that_is_gone_exists_and_what_is_named_instead_does():
    variables = {one.variable for one in describe_settings()}
    assert variables.isdisjoint(GONE)
    assert set(re.findall(r"VSKILL_[A-Z_]+", " ".join(GONE.values()))) <= variables


def test_a_starved_scan_ends_before_its_submission_even_after_the_longest_fetch():
    """Otherwise the submission's budget would end it, as a failure that counts against the content."""
    settings = Settings()
    assert settings.fetch_budget_ms + DEFAULT_LIMITS.wall_s * 1000 < settings.submission_budget_ms
    assert (WAIT_S + DEFAULT_LIMITS.wall_s) * 1000 < settings.submission_budget_ms


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("VSKILL_JUDGE_URL", "ftp://127.0.0.1/v1"),
        ("VSKILL_JUDGE_URL", "http://user:pass@127.0.0.1/v1"),
        ("VSKILL_JUDGE_URL", "http:///v1"),
        ("VSKILL_JUDGE_URL", "http://127.0.0.1/v1?key=x"),
        ("VSKILL_JUDGE_MAX_BYTES", "10"),
    ],
)
def test_an_address_that_could_mean_something_else_is_refused(name, value):
    with pytest.raises(InvalidSettings, match=name):
        load_settings({name: value})


@pytest.mark.parametrize("given", ["VSKILL_JUDGE_URL", "VSKILL_JUDGE_MODEL"])
def test_half_a_judge_is_refused_with_both_names(given):
    value = {"VSKILL_JUDGE_URL": "http://127.0.0.1:1/v1", "VSKILL_JUDGE_MODEL": "m"}[given]
    with pytest.raises(InvalidSettings, match="set both for a judge") as caught:
        load_settings({given: value})
    assert set(caught.value.details["settings"]) == {"VSKILL_JUDGE_MODEL", "VSKILL_JUDGE_URL"}  # type: ignore[call-overload]


JUDGE = {"VSKILL_JUDGE_URL": "http://127.0.0.1:1/v1", "VSKILL_JUDGE_MODEL": "m"}
SECOND = {"VSKILL_SECOND_JUDGE_URL": "http://127.0.0.1:2/v1", "VSKILL_SECOND_JUDGE_MODEL": "n"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (SECOND, "VSKILL_SECOND_JUDGE_URL is set and VSKILL_JUDGE_URL is not"),
        ({**JUDGE, "VSKILL_SECOND_JUDGE_MODEL": "n"}, "set both for a second judge"),
        ({**JUDGE, **SECOND, "VSKILL_SECOND_JUDGE_MODEL": "m"}, "name another model"),
        ({"VSKILL_JUDGES_REQUIRED": "1"}, "write 'needs: {judges: 1}' in a file"),
        ({"VSKILL_REQUIRED_ANALYSERS": "bandit"}, "write 'needs: {analysers: [bandit]}'"),
        ({"VSKILL_TRUSTED_OWNERS": "github.com/acme"}, "write 'trusted: [github.com/acme]'"),
        ({"VSKILL_REVIEW_SIGNALS": "copy"}, "name it in VSKILL_POLICY"),
        ({"VSKILL_REVIEW_NEW_CAPABILITIES": ""}, "name it in VSKILL_POLICY"),
    ],
)
def test_judges_that_do_not_fit_and_settings_of_the_policy_are_refused_with_the_fix(given, words):
    with pytest.raises(InvalidSettings) as caught:
        load_settings(given)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("given", "judges", "analysers", "words"),
    [
        ({}, 1, (), "it needs 1 judges, and 0 are configured"),
        (JUDGE, 2, (), "it needs 2 judges, and 1 are configured"),
        ({}, 0, ("far",), "far, which is no analyser of this registry"),
        ({"VSKILL_BANDIT_COMMAND": "off"}, 0, ("bandit",), "none that is off"),
        ({**JUDGE, **SECOND, "VSKILL_EXTERNAL_SCAN_SECRETS": f"far={'s' * 16}"}, 2, ("semgrep", "far"), ""),
    ],
)
def test_what_a_policy_needs_must_be_configured(given, judges, analysers, words):
    told = describe_unmet(load_settings(given), judges, analysers)
    assert words in told and bool(words) == bool(told)


def test_a_remote_analyser_with_the_name_of_one_that_runs_here_is_refused():
    """It would never be asked, and whoever set it would wait for its reports."""
    given = f"acme={'s' * 16}, semgrep={'s' * 16}"
    with pytest.raises(InvalidSettings, match="VSKILL_EXTERNAL_SCAN_SECRETS: semgrep") as caught:
        load_settings({"VSKILL_EXTERNAL_SCAN_SECRETS": given})
    assert "another name" in str(caught.value.details["fix"]) and "ssss" not in caught.value.message


def test_a_secret_is_in_no_representation_and_in_no_error():
    secret = "sk-very-secret"
    settings = Settings(judge_url="http://h/v1", judge_model="m", judge_api_key=secret)
    assert {
        "judge_api_key",
        "external_scan_secrets",
        "github_client_secret",
        "metrics_token",
        "sealing_key",
        "second_judge_api_key",
        "signing_key",
        "smtp_url",
    } == SECRETS
    for text in (repr(settings), str(settings), f"{settings}", repr([settings])):
        assert secret not in text
        assert "judge_api_key='***'" in text
    assert "judge_api_key=''" in repr(Settings())
    with pytest.raises(InvalidSettings) as caught:
        load_settings({"VSKILL_JUDGE_API_KEY": f"{secret} with a space"})
    assert secret not in caught.value.message
    assert "VSKILL_JUDGE_API_KEY" in caught.value.message


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        Settings().port = 1  # type: ignore[misc]


def test_every_setting_has_a_sentence_and_says_what_it_accepts():
    facts = describe_settings()
    assert [one.field for one in facts] == list(CHOSEN)
    assert all(one.sentence.endswith(".") and one.accepts != "another value" for one in facts)
    assert {one.field for one in facts if one.is_secret} == SECRETS


def test_a_setting_that_another_ones_sentence_names_exists():
    named = re.findall(r"VSKILL_[A-Z_]+", " ".join(one.sentence for one in describe_settings()))
    assert named
    assert set(named) <= {one.variable for one in describe_settings()}


@pytest.mark.parametrize("facts", describe_settings(), ids=lambda one: one.field)
def test_a_documented_default_can_be_set_and_gives_the_default(facts):
    if facts.default:
        settings = load_settings({facts.variable: facts.default})
        assert getattr(settings, facts.field) == getattr(Settings(), facts.field)


@pytest.mark.parametrize(
    "location",
    [
        "postgresql://me:p@hush@h/db", "postgresql://me:hu/sh@h/db", "postgresql://me:hu?sh@h/db", "postgresql://me:hu#sh@h/db",
        "postgresql://me@h/db?password=hush", "postgresql://me@h/db?password=hu@sh", "postgres://me:h@us@h@h:1/db?x=y",
    ],
)  # fmt: skip
def test_no_part_of_a_password_is_shown(location):
    shown = shown_location(location)
    assert shown.partition("://")[2].startswith("me@") and not re.search("hu|sh|us", shown)
    assert f"store={shown!r}" in repr(Settings(store=location))


@pytest.mark.parametrize(
    "location",
    [
        "postgresql:///db?host=/tmp/x", "postgresql://h", "postgres://me@h:5/db", "postgresql://me:a%40b%2Fc@[::1]:5/db?ssl=off",
        "postgresql://me:p:q@h1:1,h2:2/db", "postgresql://%2Ftmp%2Fx/db", "postgresql:///db",
    ],
)  # fmt: skip
def test_every_form_of_a_servers_address_is_taken(location):
    check_settings(Settings(store=location))


def test_a_pooler_that_keeps_no_transaction_together_is_refused():
    with pytest.raises(InvalidSettings, match="VSKILL_STORE: 'statement' is no pool_mode") as caught:
        load_settings({"VSKILL_STORE": "postgresql://me@pooler:6432/db?pool_mode=statement"})
    assert "?pool_mode=transaction" in caught.value.message
