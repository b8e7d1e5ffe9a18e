"""The document says all that the API does: every route, every parameter, every answer."""

import msgspec
import pytest
from jsonschema_rs import meta

from vskill_platform.actions.principal import OPEN_RIGHTS
from vskill_platform.actions.wire import field_texts
from vskill_platform.web.app import ENDPOINTS
from vskill_platform.web.openapi import (
    TAGS,
    document,
    needs_account,
    operation_id,
    problem_statuses,
    template,
)
from vskill_platform.web.routing import Endpoint

DOCUMENTED = [one for one in ENDPOINTS if one.documented]
NAMES = [f"{one.method} {one.path}" for one in DOCUMENTED]


@pytest.fixture(scope="module")
def described():
    return document(ENDPOINTS)


@pytest.mark.parametrize("endpoint", DOCUMENTED, ids=NAMES)
def test_every_endpoint_says_what_it_is_for_and_what_it_answers(endpoint: Endpoint):
    assert endpoint.summary and endpoint.summary[0].isupper() and not endpoint.summary.endswith(".")
    assert endpoint.tag in TAGS
    assert endpoint.answer is not None or endpoint.media != "application/json", "an answer in JSON has a type"
    in_path = () if endpoint.action is None else endpoint.action.path_fields
    fields = None if endpoint.action is None else set(endpoint.action.request.__struct_fields__)
    has_body = endpoint.body is not None or bool(endpoint.body_media)
    assert endpoint.method in ("GET", "DELETE") or has_body or fields == set(in_path)


def test_every_documented_endpoint_is_in_the_document_once(described):
    found = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert found == {(one.method, template(one)) for one in DOCUMENTED}
    assert len({operation_id(one) for one in DOCUMENTED}) == len(DOCUMENTED)


def test_pages_are_not_in_the_document(described):
    pages = {one.path for one in ENDPOINTS if one.media == "text/html"}
    assert not pages & set(described["paths"])


def test_every_operation_is_complete(described):
    for path, methods in described["paths"].items():
        for operation in methods.values():
            assert operation["summary"] and operation["tags"] and operation["security"]
            named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert named == {part.strip("{}") for part in path.split("/") if part.startswith("{")}
            for status, answer in operation["responses"].items():
                assert answer["description"]
                assert "content" in answer or status == "204"
            assert {"400", "503"} <= set(operation["responses"])


def test_every_reference_leads_somewhere_and_every_type_is_referred_to(described):
    text = msgspec.json.encode(described).decode()
    used = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert used == set(described["components"]["schemas"])


def test_every_schema_is_a_json_schema(described):
    for name, schema in described["components"]["schemas"].items():
        assert meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}), name


def test_names_on_the_wire_are_camel_case(described):
    """But for those of RFC 8628."""
    schemas = described["components"]["schemas"]
    for name in schemas.keys() - {"AskForToken", "CodeAnswer", "DeviceToken"}:
        schema = schemas[name]
        assert not [field for field in schema.get("properties", {}) if "_" in field], name


def test_who_may_use_an_address_is_in_the_document(described):
    for one in DOCUMENTED:
        operation = described["paths"][template(one)][one.method.lower()]
        assert ({} in operation["security"]) is not needs_account(one)
        if one.action and one.action.right not in OPEN_RIGHTS:
            assert {401, 403} <= problem_statuses(one)
        if one.allowance is not None:
            assert "Retry-After" in operation["responses"]["429"]["headers"]


def test_fields_are_described_in_the_words_of_the_source(described):
    detail = described["components"]["schemas"]["SkillDetail"]["properties"]
    assert detail["sha"]["description"] == "Of SKILL.md, as clients compute it"


def test_a_description_may_run_over_several_lines():
    class Two(msgspec.Struct, rename="camel"):
        #: the first line
        #: and the second
        one_field: int
        other: int

    assert field_texts(Two) == {"oneField": "the first line and the second"}
