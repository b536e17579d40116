use super::*;
use crate::env::Timestamp;
use proptest::prelude::*;

fn message(n: usize) -> Message {
    Message::user(n.to_string(), Timestamp::default())
}

fn texts(history: &History) -> Vec<String> {
    history
        .iter()
        .map(|m| {
            m.as_user()
                .map(crate::UserMessage::text)
                .unwrap_or_default()
        })
        .collect()
}

#[test]
fn a_clone_does_not_see_what_is_pushed_later() {
    let mut a = History::new();
    a.push(message(0));
    let b = a.clone();
    a.push(message(1));
    assert_eq!(
        (texts(&a), texts(&b)),
        (vec!["0".into(), "1".into()], vec!["0".into()])
    );
}

#[test]
fn a_second_push_at_one_place_forks_and_shares_the_messages() {
    let mut a: History = (0..40).map(message).collect();
    let mut b = a.truncated(20);
    let c = a.clone();
    b.push(message(100));
    a.push(message(40));
    assert_eq!(b.len(), 21);
    assert_eq!(texts(&b)[20], "100");
    assert!(Arc::ptr_eq(a.get(3).unwrap(), b.get(3).unwrap()));
    assert_eq!(b.common_prefix(&a), 20);
    assert_eq!(a.common_prefix(&c), 40);
    assert_eq!(c.common_prefix(&b), 20);
}

#[test]
fn it_reads_back_what_it_wrote() {
    let a: History = (0..5).map(message).collect();
    let text = serde_json::to_string(&a).unwrap();
    assert_eq!(serde_json::from_str::<History>(&text).unwrap(), a);
    assert!(a.get(5).is_none());
}

#[test]
fn threads_that_push_to_clones_lose_nothing() {
    let base: History = (0..10).map(message).collect();
    let ends: Vec<History> = std::thread::scope(|s| {
        let threads: Vec<_> = (0..4)
            .map(|t| {
                let mut mine = base.clone();
                s.spawn(move || {
                    for i in 0..200 {
                        mine.push(message(1000 * t + i));
                    }
                    mine
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for (t, end) in ends.iter().enumerate() {
        assert_eq!(end.len(), 210);
        assert_eq!(texts(end)[209], (1000 * t + 199).to_string());
        assert!(end.common_prefix(&base) == 10 || !Arc::ptr_eq(&end.log, &base.log));
    }
}

proptest! {
    /// Whatever is cloned, cut and pushed: each view holds what a plain list would hold, and
    /// the common prefix never tells more than is true.
    #[test]
    fn it_behaves_as_a_list(ops in proptest::collection::vec((0usize..6, 0usize..6, 0usize..80), 1..80)) {
        let mut views: Vec<(History, Vec<usize>)> = vec![(History::new(), vec![]); 6];
        let mut next = 0;
        for (from, to, cut) in ops {
            if cut < 50 {
                views[from].0.push(message(next));
                views[from].1.push(next);
                next += 1;
            } else {
                let cut = cut - 50;
                let (history, list) = &views[from];
                let new = (history.truncated(cut), list.iter().copied().take(cut).collect());
                views[to] = new;
            }
        }
        for (history, list) in &views {
            prop_assert_eq!(history.len(), list.len());
            prop_assert_eq!(texts(history), list.iter().map(usize::to_string).collect::<Vec<_>>());
            for (other, other_list) in &views {
                let common = list.iter().zip(other_list).take_while(|(a, b)| a == b).count();
                prop_assert!(history.common_prefix(other) <= common);
            }
        }
    }
}

#[test]
fn a_memo_keeps_what_is_of_another_type() {
    let memo = Memo::new();
    memo.put(Box::new(7u32));
    assert!(memo.clone().take::<String>().is_none());
    assert_eq!(*memo.take::<u32>().unwrap(), 7);
    assert!(memo.take::<u32>().is_none());
}
