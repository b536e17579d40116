use std::sync::Arc;

use yiem_core::{Message, SystemEnv, Timestamp};

use super::*;

fn record(text: &str) -> JournalRecord {
    JournalRecord::Message {
        message: Arc::new(Message::user(text, Timestamp::default())),
    }
}

fn texts(session: &Session) -> Vec<String> {
    session
        .history
        .iter()
        .filter_map(|m| m.as_user().map(|u| u.text()))
        .collect()
}

#[tokio::test]
async fn what_was_appended_is_there_when_it_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let id = {
        let (journal, session) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
        for policy in [
            FlushPolicy::PerRecord,
            FlushPolicy::PerTurn,
            FlushPolicy::Never,
        ] {
            let _ = policy;
        }
        journal.append(&record("one")).await.unwrap();
        let journal = journal.with_flush(FlushPolicy::PerRecord);
        journal.append(&record("two")).await.unwrap();
        journal.flush().await.unwrap();
        session.id
    };
    let (_, session) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
    assert_eq!(session.id, id);
    assert_eq!(texts(&session), ["one", "two"]);
}

#[tokio::test]
async fn a_second_writer_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let first = FileJournal::open(&path, &SystemEnv::default()).unwrap();
    let error = FileJournal::open(&path, &SystemEnv::default()).unwrap_err();
    assert!(error.to_string().contains("in use"), "{error}");
    drop(first);
    FileJournal::open(&path, &SystemEnv::default()).unwrap();
}

#[tokio::test]
async fn a_torn_last_line_is_cut_off_wherever_it_was_torn() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    {
        let (journal, _) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
        journal.append(&record("one")).await.unwrap();
        journal.append(&record("two")).await.unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    let second = whole[..whole.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap()
        + 1;
    for cut in second + 1..whole.len() {
        let torn = dir.path().join(format!("torn-at-{cut}.jsonl"));
        std::fs::write(&torn, &whole[..cut]).unwrap();
        let (journal, session) = FileJournal::open(&torn, &SystemEnv::default()).unwrap();
        assert_eq!(texts(&session), ["one"], "cut at {cut}");
        journal.append(&record("three")).await.unwrap();
        drop(journal);
        let aside = format!("{}.torn-1", torn.display());
        assert_eq!(std::fs::read(aside).unwrap(), &whole[second..cut]);
        let (_, session) = FileJournal::open(&torn, &SystemEnv::default()).unwrap();
        assert_eq!(texts(&session), ["one", "three"]);
    }
}

#[tokio::test]
async fn unknown_records_are_kept_and_newer_versions_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let text = "{\"yiem\":\"journal\",\"version\":0,\"sessionId\":\"old\",\"more\":1}\n\
                {\"record\":\"fromTheFuture\",\"x\":1}\n";
    std::fs::write(&path, text).unwrap();
    {
        let (journal, session) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
        assert_eq!(session.id.unwrap(), "old");
        journal.append(&record("one")).await.unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(text));
    std::fs::write(&path, text.replace("\"version\":0", "\"version\":99")).unwrap();
    let error = FileJournal::open(&path, &SystemEnv::default()).unwrap_err();
    assert!(error.to_string().contains("version 99"), "{error}");
    std::fs::write(&path, "hello\nworld\n").unwrap();
    let error = FileJournal::open(&path, &SystemEnv::default()).unwrap_err();
    assert!(error.to_string().contains("no journal"), "{error}");
}

#[tokio::test]
async fn a_flush_takes_no_lock_that_a_record_waits_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let (journal, _) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
    assert_eq!(journal.flush, FlushPolicy::PerTurn);
    journal.append(&record("one")).await.unwrap();
    // Whoever writes has the lock; the flush ends all the same.
    let lines = Arc::clone(&journal.lines);
    let (writes, is_writing) = std::sync::mpsc::channel();
    let (flushed, is_flushed) = std::sync::mpsc::channel::<()>();
    let write = std::thread::spawn(move || {
        let _held = lines.lock().unwrap();
        writes.send(()).unwrap();
        is_flushed.recv_timeout(std::time::Duration::from_secs(100))
    });
    is_writing.recv().unwrap();
    journal.flush().await.unwrap();
    flushed.send(()).unwrap();
    assert_eq!(write.join().unwrap(), Ok(()), "flushing waited for a write");
}

#[tokio::test]
async fn closing_does_not_wait_for_a_write_and_lets_go_when_it_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let (journal, _) = FileJournal::open(&path, &SystemEnv::default()).unwrap();
    let lines = Arc::clone(&journal.lines);
    let (writes, is_writing) = std::sync::mpsc::channel();
    let (closed, is_closed) = std::sync::mpsc::channel::<()>();
    // Stands for a write that waits for the disk.
    let write = std::thread::spawn(move || {
        let _held = lines.lock().unwrap();
        writes.send(()).unwrap();
        is_closed.recv_timeout(std::time::Duration::from_secs(100))
    });
    is_writing.recv().unwrap();
    journal.close();
    drop(journal);
    FileJournal::open(&path, &SystemEnv::default()).unwrap_err();
    closed.send(()).unwrap();
    assert_eq!(
        write.join().unwrap(),
        Ok(()),
        "closing waited for the write"
    );
    let free = async {
        while FileJournal::open(&path, &SystemEnv::default()).is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(100), free)
        .await
        .unwrap();
}
