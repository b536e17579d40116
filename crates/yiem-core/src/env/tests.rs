use super::*;

#[test]
fn a_timestamp_is_written_in_utc_with_milliseconds() {
    let t = Timestamp::from_millis(1_764_472_632_007);
    assert_eq!(
        serde_json::to_string(&t).unwrap(),
        r#""2025-11-30T03:17:12.007Z""#
    );
}

#[test]
fn a_timestamp_is_read_in_every_form() {
    for text in [
        "2025-11-30T03:17:12.007Z",
        "2025-11-30T10:17:12.007+07:00",
        "2025-11-30T03:17:12.007",
        "2025-11-30 03:17:12.007",
        "2025-11-30T03:17:12.0079Z",
    ] {
        assert_eq!(
            Timestamp::parse(text).unwrap().as_millis(),
            1_764_472_632_007,
            "{text}"
        );
    }
    let t: Timestamp = serde_json::from_str("1764472632007").unwrap();
    assert_eq!(t.as_millis(), 1_764_472_632_007);
    assert!(Timestamp::parse("yesterday").is_err());
}

#[test]
fn times_outside_of_what_can_be_written_are_held_at_the_edge() {
    for millis in [i64::MIN, -1, 0, i64::MAX] {
        let t = Timestamp::from_millis(millis);
        assert_eq!(Timestamp::parse(&t.to_string()).unwrap(), t);
    }
}

#[cfg(feature = "system")]
#[test]
fn system_ids_fit_every_server_and_differ() {
    let env = SystemEnv::shared();
    let a = env.new_id(IdKind::Call);
    assert!(a.starts_with("call_") && a.len() <= 40);
    assert_ne!(a, env.new_id(IdKind::Call));
    assert!((0.0..1.0).contains(&env.random()));
}
