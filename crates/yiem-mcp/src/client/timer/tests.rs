use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use yiem_core::{IdKind, Timestamp};

/// Counts the timers that are made and those that are still there.
#[derive(Debug)]
struct Counting {
    start: tokio::time::Instant,
    made: AtomicUsize,
    held: Arc<()>,
}

impl Counting {
    fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
            made: AtomicUsize::new(0),
            held: Arc::new(()),
        }
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    fn running(&self) -> usize {
        Arc::strong_count(&self.held) - 1
    }
}

impl Env for Counting {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }
    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.made.fetch_add(1, Ordering::Relaxed);
        let held = Arc::clone(&self.held);
        let sleep = tokio::time::sleep(duration);
        Box::pin(async move {
            sleep.await;
            drop(held);
        })
    }
    fn new_id(&self, _: IdKind) -> String {
        String::new()
    }
    fn random(&self) -> f64 {
        0.0
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn one_timer_serves_calls_that_follow_each_other() {
    let (env, spare) = (Counting::new(), SpareTimer::default());
    for _ in 0..10 {
        let timer = spare.take(&env, env.elapsed(), MINUTE);
        tokio::time::advance(SECOND).await;
        spare.keep(timer);
    }
    assert_eq!((env.made(), env.running()), (1, 1));
    spare.clear();
    assert_eq!(env.running(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_timer_is_later_than_its_waiter_or_over_already() {
    let (env, spare) = (Counting::new(), SpareTimer::default());
    spare.keep(spare.take(&env, env.elapsed(), MINUTE));
    // Due in a minute: too late for who waits a second.
    let short = spare.take(&env, env.elapsed(), SECOND);
    assert_eq!(env.made(), 2);
    let before = env.elapsed();
    short.await;
    // A timer of tokio's ends up to a millisecond later.
    let waited = env.elapsed() - before;
    assert!(waited >= SECOND && waited < SECOND * 2, "{waited:?}");
    // One that is over is no use to anybody.
    spare.keep(spare.take(&env, env.elapsed(), SECOND));
    tokio::time::advance(MINUTE).await;
    spare.keep(spare.take(&env, env.elapsed(), MINUTE));
    assert_eq!(env.made(), 4);
    tokio::time::advance(MINUTE * 2).await;
    let late = spare.take(&env, env.elapsed(), MINUTE);
    tokio::time::advance(MINUTE * 2).await;
    spare.keep(late);
    assert_eq!(env.running(), 0, "a timer that has ended is not kept");
}

#[test]
fn a_timer_does_not_outlive_its_runtime() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
    };
    let spare = SpareTimer::default();
    let first = runtime();
    let env = first.block_on(async { Counting::new() });
    first.block_on(async { spare.keep(spare.take(&env, env.elapsed(), MINUTE)) });
    drop(first);
    runtime().block_on(async {
        spare
            .take(&env, env.elapsed(), Duration::from_millis(1))
            .await;
        spare.keep(spare.take(&env, env.elapsed(), MINUTE));
    });
    // The one of the other runtime was not waited for: that would have panicked.
    assert_eq!(env.made(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_kept_timer_holds_no_task() {
    struct Held(#[expect(dead_code, reason = "it is only held")] Arc<()>);
    impl std::task::Wake for Held {
        fn wake(self: Arc<Self>) {}
    }
    let (env, spare) = (Counting::new(), SpareTimer::default());
    let held = Arc::new(());
    let waker = Waker::from(Arc::new(Held(Arc::clone(&held))));
    let mut timer = spare.take(&env, env.elapsed(), MINUTE);
    let polled = Pin::new(&mut timer).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    drop(waker);
    assert_eq!(Arc::strong_count(&held), 2);
    spare.keep(timer);
    assert_eq!(Arc::strong_count(&held), 1);
}
