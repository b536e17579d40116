use super::*;

#[test]
fn unreadable_arguments_are_quoted_and_cut() {
    let text = unreadable("{\"a\": ", "it ends too soon");
    assert!(
        text.contains("{\"a\": ") && text.contains("it ends too soon"),
        "{text}"
    );
    let long = "é".repeat(2_000);
    let text = unreadable(&long, "no JSON");
    assert!(text.len() < 1_200 && text.contains('…'));
}

#[tokio::test(start_paused = true)]
async fn work_is_cut_at_its_time_and_its_panic_is_an_error() {
    let env = yiem_core::SystemEnv::shared();
    let limit = Duration::from_secs(3);
    let none = |_, _| Duration::ZERO;
    assert_eq!(within(&env, limit, none, async { 1 }).await, Ended::Done(1));
    assert_eq!(
        within(&env, limit, none, std::future::pending::<u8>()).await,
        Ended::TimedOut
    );
    let panicked = within(&env, limit, none, async { panic!("told to panic") }).await;
    let panicked: Ended<()> = panicked;
    assert_eq!(panicked, Ended::Panicked("told to panic".to_owned()));
    let slow = async {
        env.sleep(Duration::from_secs(2)).await;
        2
    };
    assert_eq!(within(&env, limit, none, slow).await, Ended::Done(2));
}
