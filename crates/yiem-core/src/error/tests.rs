use super::*;

fn fails() -> Result<()> {
    "x".parse::<u32>()?;
    Ok(())
}

#[test]
fn any_error_goes_in_by_question_mark_and_can_be_found_again() {
    let e = fails().unwrap_err();
    assert!(e.downcast_ref::<std::num::ParseIntError>().is_some());
    assert_eq!(e.to_string(), "invalid digit found in string");
}

#[test]
fn debug_prints_every_cause() {
    let e = fails()
        .unwrap_err()
        .context("reading the port")
        .context("starting");
    assert_eq!(e.to_string(), "starting");
    assert_eq!(
        format!("{e:?}"),
        "starting\n  caused by: reading the port\n  caused by: invalid digit found in string"
    );
}

#[test]
fn a_cause_that_was_told_already_is_not_told_again() {
    let error = Error::msg("refused")
        .context("connecting was refused")
        .context("starting");
    assert_eq!(
        format!("{error:?}"),
        "starting\n  caused by: connecting was refused"
    );
}
