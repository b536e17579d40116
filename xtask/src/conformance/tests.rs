use super::*;

fn scenario(name: &str, revision: Option<&str>) -> Scenario {
    Scenario {
        name: name.to_owned(),
        revision: revision.map(str::to_owned),
    }
}

#[test]
fn a_scenario_is_one_run_for_each_revision() {
    let list = "Client scenarios:\n  - tools_call [2025-06-18,2026-07-28]\n  - auth/x [2025-11-25]\n  - odd/thing [extension]\n  - auth/client-credentials-basic [extension]\n";
    assert_eq!(
        scenarios(list),
        [
            scenario("tools_call", Some("2025-06-18")),
            scenario("tools_call", Some("2026-07-28")),
            scenario("auth/x", Some("2025-11-25")),
            scenario("auth/client-credentials-basic", None),
        ]
    );
    assert_eq!(scenario("auth/x", Some("2025-11-25")).group(), "auth");
    assert_eq!(
        scenario("auth/client-credentials-basic", None).group(),
        "ext"
    );
}

#[test]
fn a_run_counts_only_when_its_checks_and_its_client_are_good() {
    assert_eq!(
        Verdict::of("Passed: 3/3, 0 failed, 0 warnings\nOVERALL: PASSED\n"),
        Verdict::Passed
    );
    assert_eq!(
        Verdict::of("Passed: 3/3, 0 failed, 0 warnings\nOVERALL: FAILED\n"),
        Verdict::Failed
    );
    assert_eq!(
        Verdict::of("Passed: 2/3, 1 failed, 0 warnings\n"),
        Verdict::Failed
    );
    assert_eq!(
        Verdict::of("Passed: 0/0, 0 failed, 0 warnings\n"),
        Verdict::Nothing
    );
    assert_eq!(
        Verdict::of("SKIPPED: not for this revision\n"),
        Verdict::Nothing
    );
    assert_eq!(Verdict::of("no verdict at all\n"), Verdict::Failed);
}

#[test]
fn an_expected_failure_that_passes_must_leave_the_list() {
    let expected =
        expected_failures("[expected-failures]\n\"2025-06-18 a\" = \"needs b\"\n").unwrap();
    let mut tally = Tally::default();
    tally.add(
        &scenario("a", Some("2025-06-18")),
        Verdict::Passed,
        &expected,
    );
    let text = tally.close(&expected, true).unwrap_err().to_string();
    assert!(text.contains("passes now"), "{text}");
}

#[test]
fn an_unexpected_failure_and_a_run_without_any_pass_are_refused() {
    let mut tally = Tally::default();
    tally.add(&scenario("a", None), Verdict::Failed, &[]);
    let text = tally.close(&[], true).unwrap_err().to_string();
    assert!(
        text.contains("extension a failed") && text.contains("not a single run"),
        "{text}"
    );
}

#[test]
fn an_expected_failure_needs_a_reason() {
    assert!(expected_failures("[expected-failures]\n\"2025-06-18 a\" = \"\"\n").is_err());
}
