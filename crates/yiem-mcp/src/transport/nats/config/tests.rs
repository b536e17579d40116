//! Addresses, as tables.

use super::*;

fn read(url: &str) -> NatsConfig {
    NatsConfig::from_url(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

#[test]
fn an_address_says_servers_subject_and_options() {
    let plain = read("nats://127.0.0.1:4222/mcp.weather");
    assert_eq!(plain.servers, ["nats://127.0.0.1:4222"]);
    assert_eq!(
        (plain.subject.as_str(), plain.style, plain.dialect),
        ("mcp.weather", SubjectStyle::Fixed, DialectChoice::Bare)
    );
    assert_eq!(
        (plain.codec, plain.call_timeout),
        (NatsCodec::Plain, Duration::from_secs(180))
    );

    let full = read(
        "nats://a:1,b,[::1]:3/mcp.w?codec=envelope&meta=modern&subjects=method&creds=/tmp/a%20b&inbox=_MINE&timeout=2.5",
    );
    assert_eq!(full.servers, ["nats://a:1", "nats://b", "nats://[::1]:3"]);
    assert_eq!(
        (full.style, full.dialect),
        (SubjectStyle::ByMethod, DialectChoice::Modern)
    );
    assert_eq!(
        (full.codec, full.auth),
        (
            NatsCodec::envelope(),
            NatsAuth::CredentialsFile("/tmp/a b".into())
        )
    );
    assert_eq!(
        (full.inbox_prefix.as_deref(), full.call_timeout),
        (Some("_MINE"), Duration::from_millis(2500))
    );

    let tls = read("tls://h/s?ca=ca.pem&cert=c.pem&key=k.pem&tls_first=true");
    assert_eq!(tls.servers, ["tls://h"]);
    assert!(tls.tls.required && tls.tls.first);
    assert_eq!(tls.tls.client, Some(("c.pem".into(), "k.pem".into())));
}

#[test]
fn credentials_in_an_address_are_taken_out_of_it() {
    let user = read("nats://bob:p%40ss@h:1/s");
    assert_eq!(
        user.auth,
        NatsAuth::UserPassword {
            user: "bob".into(),
            password: "p@ss".into()
        }
    );
    assert_eq!(user.servers, ["nats://h:1"]);
    let token = read("nats://sesame@h:1,sesame@i:2/s");
    assert_eq!(token.auth, NatsAuth::Token("sesame".into()));
    assert_eq!(token.servers, ["nats://h:1", "nats://i:2"]);
    let env = read("nats://h/s?user_env=U&password_env=P");
    assert_eq!(
        env.auth,
        NatsAuth::UserEnv {
            user: "U".into(),
            password: Some("P".into())
        }
    );
    let env = read("nats://h/s?password_env=P&user_env=U");
    assert_eq!(
        env.auth,
        NatsAuth::UserEnv {
            user: "U".into(),
            password: Some("P".into())
        }
    );
    assert_eq!(
        read("nats://h/s?token_env=T").auth,
        NatsAuth::TokenEnv("T".into())
    );
    assert_eq!(
        read("nats://h/s?nkey_env=N").auth,
        NatsAuth::NkeyEnv("N".into())
    );
}

#[test]
fn nothing_secret_is_shown() {
    let secrets = [
        format!("{:?}", read("nats://bob:hunter2@h:1/s")),
        format!("{:?}", read("nats://hunter2@h:1/s")),
        format!(
            "{:?}",
            NatsConfig::new(["nats://bob:hunter2@h:1"], "s")
                .with_auth(NatsAuth::Nkey("hunter2".into()))
        ),
        format!("{:?}", NatsAuth::Credentials("hunter2".into())),
        NatsConfig::from_url("nats://bob:hunter2@h:1/s?codec=hunter3")
            .expect_err("bad codec")
            .to_string(),
        NatsConfig::from_url("nats://bob:hunter2@h:1")
            .expect_err("no subject")
            .to_string(),
    ];
    for text in secrets {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (url, words) in [
        ("http://h/s", "begins with nats://"),
        ("h:4222/s", "begins with nats://"),
        ("nats://h:4222", "needs the subject"),
        ("nats://h:4222/", "it is empty"),
        ("nats:///s", "needs a host"),
        ("nats://h,/s", "needs a host"),
        ("nats://h/a b", "space"),
        ("nats://h/a.*", "wildcard"),
        ("nats://h/s?codec=xml", "plain or envelope"),
        ("nats://h/s?meta=old", "none or modern"),
        ("nats://h/s?subjects=many", "fixed or method"),
        ("nats://h/s?timeout=0", "above 0"),
        ("nats://h/s?timeout=soon", "above 0"),
        ("nats://h/s?tls_first=yes", "true or false"),
        ("nats://h/s?color=red", "no option `color`"),
        ("nats://h/s%2", "%25"),
    ] {
        let error = NatsConfig::from_url(url).expect_err(url).to_string();
        assert!(error.contains(words), "{url}: {error}");
    }
}

#[test]
fn options_of_the_envelope_ask_for_it() {
    let config = read("nats://h/s?sender_id=agent-7&fileserver=http://files:8080");
    let NatsCodec::Envelope(envelope) = config.codec else {
        panic!("no envelope")
    };
    assert_eq!(
        (
            envelope.sender_id.as_str(),
            envelope.fileserver_url.as_str()
        ),
        ("agent-7", "http://files:8080")
    );
}

#[test]
fn an_entry_of_other_clients_maps_is_read() {
    let entry = |text: &str| {
        let entry: Map<String, Value> = serde_json::from_str(text).expect("JSON");
        NatsConfig::from_entry(&entry["nats"].clone(), &entry)
    };
    for text in [
        r#"{"nats": "nats://h:1/mcp.w?codec=envelope", "required": true}"#,
        r#"{"nats": "nats://h:1", "subject": "mcp.w", "codec": "envelope"}"#,
        r#"{"nats": {"url": "nats://h:1", "subject": "mcp.w", "codec": "envelope"}, "timeout": 5}"#,
        r#"{"nats": {"servers": ["nats://h:1"], "subject": "mcp.w", "codec": "envelope"}}"#,
        r#"{"nats": {"url": "nats://h:1?codec=envelope", "subject": "mcp.w"}}"#,
    ] {
        let config = entry(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(
            (config.servers[0].as_str(), config.subject.as_str()),
            ("nats://h:1", "mcp.w"),
            "{text}"
        );
        assert_eq!(config.codec, NatsCodec::envelope(), "{text}");
    }
    let token = entry(r#"{"nats": {"servers": ["tls://a", "b:2"], "subject": "s", "token": "t"}}"#)
        .expect("good");
    assert_eq!(
        (token.auth, token.servers.join(" ")),
        (NatsAuth::Token("t".into()), "tls://a tls://b:2".into())
    );
    for text in [
        r#"{"nats": 7}"#,
        r#"{"nats": {}}"#,
        r#"{"nats": {"url": "nats://h"}}"#,
        r#"{"nats": {"url": "nats://h/s", "colour": "red"}}"#,
    ] {
        assert!(entry(text).is_err(), "{text}");
    }
}
