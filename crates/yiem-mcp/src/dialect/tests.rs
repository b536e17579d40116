use super::*;
use proptest::prelude::*;
use serde_json::json;

const LEGACY: OpeningStep = OpeningStep::Initialize(ProtocolVersion::NEWEST_LEGACY);

fn after_discover(reply: OpeningReply) -> OpeningStep {
    let (mut opening, step) = Opening::start(DialectChoice::Detect);
    assert_eq!(step, OpeningStep::Discover(ProtocolVersion::NEWEST));
    opening.reply(reply)
}

fn error(code: i64) -> JsonRpcError {
    JsonRpcError::new(code, "no")
}

#[test]
fn a_server_that_discovers_is_modern() {
    let step = after_discover(OpeningReply::Result(json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s"}},
    })));
    let OpeningStep::Done(Dialect::Modern(ProtocolVersion::V2026_07_28), facts) = step else {
        panic!("{step:?}")
    };
    assert!(facts.offers("tools") && !facts.offers("prompts") && facts.tells_changes_of("tools"));
    assert_eq!(facts.info, Some(json!({"name": "s"})));
}

#[test]
fn any_other_answer_to_discover_leads_to_the_handshake() {
    for reply in [
        OpeningReply::Error(error(-32601)),
        OpeningReply::Error(error(-32602)),
        OpeningReply::Error(error(-32000)),
        OpeningReply::Error(error(0)),
        OpeningReply::Nothing,
        OpeningReply::Result(json!({})),
        OpeningReply::Result(json!("pong")),
        OpeningReply::Result(json!({"tools": []})),
        OpeningReply::Result(json!({"supportedVersions": ["2025-11-25"]})),
    ] {
        assert_eq!(after_discover(reply.clone()), LEGACY, "{reply:?}");
    }
}

#[test]
fn a_refused_version_is_negotiated_once_and_never_by_handshake() {
    let refusal = |supported: Value| {
        OpeningReply::Error(error(-32022).with_data(json!({"supported": supported})))
    };
    let (mut opening, _) = Opening::start(DialectChoice::Detect);
    assert_eq!(
        opening.reply(refusal(json!(["2026-07-28"]))),
        OpeningStep::Discover(ProtocolVersion::V2026_07_28)
    );
    assert!(matches!(
        opening.reply(refusal(json!(["2026-07-28"]))),
        OpeningStep::Failed(OpeningFailure::Versions(_))
    ));
    let failed = after_discover(refusal(json!(["2099-01-01"])));
    let OpeningStep::Failed(OpeningFailure::Versions(text)) = failed else {
        panic!("{failed:?}")
    };
    assert!(
        text.contains("2099-01-01") && text.contains("2026-07-28"),
        "{text}"
    );
}

#[test]
fn modern_refusals_of_details_are_still_modern() {
    for code in [-32020, -32021] {
        assert!(matches!(
            after_discover(OpeningReply::Error(error(code))),
            OpeningStep::Done(Dialect::Modern(_), _)
        ));
    }
}

#[test]
fn the_handshake_takes_any_version_that_is_spoken_and_refuses_others() {
    let shake = |result: Value| {
        let (mut opening, step) = Opening::start(DialectChoice::Legacy);
        assert_eq!(step, LEGACY);
        opening.reply(OpeningReply::Result(result))
    };
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let step = shake(json!({"protocolVersion": version, "capabilities": {}}));
        let OpeningStep::Done(Dialect::Legacy(found), _) = step else {
            panic!("{step:?}")
        };
        assert_eq!(found.as_str(), version);
    }
    assert!(matches!(
        shake(json!({})),
        OpeningStep::Done(Dialect::Legacy(_), _)
    ));
    for odd in [
        json!({"protocolVersion": "1.0"}),
        json!({"protocolVersion": 7}),
        json!("yes"),
        json!(null),
    ] {
        assert!(
            matches!(shake(odd.clone()), OpeningStep::Failed(_)),
            "{odd}"
        );
    }
}

#[test]
fn a_refused_handshake_is_tried_again_with_a_version_that_the_server_names() {
    let (mut opening, _) = Opening::start(DialectChoice::Legacy);
    let refusal =
        || OpeningReply::Error(error(-32602).with_data(json!({"supported": ["2024-11-05"]})));
    assert_eq!(
        opening.reply(refusal()),
        OpeningStep::Initialize(ProtocolVersion::V2024_11_05)
    );
    assert!(matches!(
        opening.reply(refusal()),
        OpeningStep::Failed(OpeningFailure::Refused(_))
    ));
}

#[test]
fn what_is_set_is_not_found_out() {
    assert_eq!(
        Opening::start(DialectChoice::Bare).1,
        OpeningStep::Done(Dialect::Bare, ServerFacts::unknown())
    );
    let (mut opening, _) = Opening::start(DialectChoice::Modern);
    assert!(matches!(
        opening.reply(OpeningReply::Nothing),
        OpeningStep::Done(Dialect::Modern(_), _)
    ));
}

proptest! {
    /// Whatever a server answers, opening ends after a few steps.
    #[test]
    fn opening_ends(codes in proptest::collection::vec(prop_oneof![Just(-32022i64), Just(-32601), Just(-32020), Just(7)], 8), versions in proptest::collection::vec("20(24-11-05|25-06-18|26-07-28|99-01-01)", 0..3)) {
        for choice in [DialectChoice::Auto, DialectChoice::Legacy, DialectChoice::Modern] {
            let (mut opening, mut step) = Opening::start(choice);
            let mut steps = 0;
            for code in &codes {
                if matches!(step, OpeningStep::Done(..) | OpeningStep::Failed(_)) {
                    break;
                }
                steps += 1;
                step = opening.reply(OpeningReply::Error(error(*code).with_data(json!({"supported": versions}))));
            }
            prop_assert!(steps <= 5);
            prop_assert!(matches!(step, OpeningStep::Done(..) | OpeningStep::Failed(_)));
        }
    }
}
