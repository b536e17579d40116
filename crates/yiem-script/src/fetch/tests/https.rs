//! HTTPS with an authority of one's own, and names whose addresses change.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::super::*;
use super::answer;

/// An authority that no machine knows, and what it says of some names.
struct Authority {
    pem: String,
    server: Arc<ServerConfig>,
}

impl Authority {
    fn of(names: &[&str]) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut own = CertificateParams::new(Vec::new()).unwrap();
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = own.self_signed(&key).unwrap();
        let issuer = Issuer::new(own, key);
        let server_key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let signed = CertificateParams::new(names)
            .unwrap()
            .signed_by(&server_key, &issuer)
            .unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![signed.der().clone()], key)
            .unwrap();
        Self {
            pem: certificate.pem(),
            server: Arc::new(server),
        }
    }

    /// A server that gives one answer to each connection, whose number can be asked for. It ends
    /// with its answers.
    fn serve(&self, at: Ipv4Addr, port: u16, answers: Vec<String>) -> Served {
        let listener = TcpListener::bind((at, port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, config) = (Arc::clone(&connections), Arc::clone(&self.server));
        let thread = std::thread::spawn(move || {
            for answer in answers {
                let Ok((socket, _)) = listener.accept() else {
                    return;
                };
                counted.fetch_add(1, Ordering::SeqCst);
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let mut stream = StreamOwned::new(connection, socket);
                // A client that does not trust us says so here, and that is all.
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                if head.ends_with(b"\r\n\r\n") {
                    let _ = stream.write_all(answer.as_bytes());
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        });
        Served {
            port,
            connections,
            _thread: thread,
        }
    }
}

struct Served {
    port: u16,
    connections: Arc<AtomicUsize>,
    /// Waits for connections that may never come, and ends with the process.
    _thread: JoinHandle<()>,
}

impl Served {
    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Names and their addresses, the first answers first; the last stays.
fn names(answers: &[&[Ipv4Addr]], admits: fn(IpAddr) -> bool) -> (Resolver, Arc<AtomicUsize>) {
    let mut answers: Vec<Vec<Ipv4Addr>> = answers.iter().map(|a| a.to_vec()).collect();
    answers.reverse();
    let answers = Mutex::new(answers);
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let lookup = move |_: String| -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut answers = answers.lock().unwrap();
        let addresses = match answers.len() {
            1 => answers[0].clone(),
            _ => answers.pop().unwrap(),
        };
        let found = addresses
            .into_iter()
            .map(|ip| SocketAddr::new(ip.into(), 0));
        let found: Vec<SocketAddr> = found.collect();
        Box::pin(async move { Ok(found) })
    };
    let lookup: Arc<Lookup> = Arc::new(lookup);
    (Resolver { admits, lookup }, asked)
}

fn admits_all(_: IpAddr) -> bool {
    true
}

/// As if 127.0.0.1 were of the public internet, and nothing else.
fn admits_the_first(ip: IpAddr) -> bool {
    ip == Ipv4Addr::LOCALHOST
}

const FIRST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

async fn get(fetcher: &Fetcher, url: &str) -> Result<Value, String> {
    let Value::Object(request) = json!({ "url": url }) else {
        unreachable!()
    };
    fetcher.fetch(request).await
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_when_it_is_given_and_not_else() {
    let authority = Authority::of(&["api.test"]);
    let served = authority.serve(FIRST, 0, vec![answer("200 OK", "over TLS"); 8]);
    let url = format!("https://api.test:{}/", served.port);
    let grant = FetchGrant::hosts([format!("api.test:{}", served.port)]).unwrap();
    let fetcher = |grant: FetchGrant| Fetcher::with(grant, names(&[&[FIRST]], admits_all).0);

    let trusting = grant.clone().trust_authorities(&authority.pem).unwrap();
    let reply = get(&fetcher(trusting), &url).await.unwrap();
    assert_eq!(
        (&reply["status"], &reply["body"]),
        (&json!(200), &json!("over TLS"))
    );

    // Nobody vouches for it, or another does.
    let other = Authority::of(&["api.test"]);
    for grant in [
        grant.clone(),
        grant.clone().trust_authorities(other.pem).unwrap(),
    ] {
        let error = get(&fetcher(grant), &url).await.unwrap_err();
        assert!(error.contains("certificate"), "{error}");
    }
    // It is vouched for by another name.
    let wrong = Authority::of(&["other.test"]);
    let served = wrong.serve(FIRST, 0, vec![answer("200 OK", "secret"); 4]);
    let url = format!("https://api.test:{}/", served.port);
    let grant = FetchGrant::hosts([format!("api.test:{}", served.port)]).unwrap();
    let grant = grant.trust_authorities(wrong.pem).unwrap();
    let error = get(&fetcher(grant), &url).await.unwrap_err();
    assert!(
        error.contains("certificate") && !error.contains("secret"),
        "{error}"
    );
}

#[test]
fn authorities_that_cannot_be_read_are_told() {
    let grant = || FetchGrant::hosts(["api.test"]).unwrap();
    for (pem, expected) in [
        ("", "no certificate in the text"),
        ("nonsense", "no certificate in the text"),
        (
            "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n",
            "certificate 1",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "certificate 1",
        ),
    ] {
        let error = grant().trust_authorities(pem).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("PEM"),
            "{pem}: {error}"
        );
    }
    let both = Authority::of(&["a.test"]).pem + &Authority::of(&["b.test"]).pem;
    assert_eq!(grant().trust_authorities(both).unwrap().roots.len(), 2);
}

#[tokio::test]
async fn redirects_from_https_stay_in_the_list_and_on_https() {
    let authority = Authority::of(&["api.test", "other.test"]);
    let to = |location: &str| answer(&format!("302 Found\r\nlocation: {location}"), "");
    let plain = TcpListener::bind((FIRST, 0)).unwrap();
    let plain_port = plain.local_addr().unwrap().port();
    let served = authority.serve(
        FIRST,
        0,
        vec![
            to("/next"),
            answer("200 OK", "next"),
            to("https://evil.test/"),
            to(&format!("http://api.test:{plain_port}/")),
            to("https://api.test:1/"),
            to("https://user:word@api.test/"),
            to("https://[::ffff:127.0.0.1]/"),
        ],
    );
    let host = format!("api.test:{}", served.port);
    let hosts = [
        host.clone(),
        format!("api.test:{plain_port}"),
        "[::ffff:127.0.0.1]".to_owned(),
    ];
    let grant = FetchGrant::hosts(hosts).unwrap();
    let grant = grant.trust_authorities(&authority.pem).unwrap();
    let fetcher = Fetcher::with(grant, names(&[&[FIRST]], admits_all).0);
    let url = format!("https://{host}/");
    assert_eq!(get(&fetcher, &url).await.unwrap()["body"], "next");
    for expected in [
        "evil.test may not be fetched",
        "http addresses may not be fetched, use https",
        "api.test:1 may not be fetched",
        "user name may not be fetched",
        "private address",
    ] {
        let error = get(&fetcher, &url).await.unwrap_err();
        assert!(
            error.contains(expected) && !error.contains("word@"),
            "{expected}: {error}"
        );
    }
    plain.set_nonblocking(true).unwrap();
    assert!(plain.accept().is_err(), "nothing went out in the clear");
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected_to() {
    let authority = Authority::of(&["api.test"]);
    let good = authority.serve(
        FIRST,
        0,
        vec![answer("200 OK\r\nconnection: close", "good"); 4],
    );
    let inside = authority.serve(SECOND, good.port, vec![answer("200 OK", "secret"); 4]);
    let host = format!("api.test:{}", good.port);
    let url = format!("https://{host}/");
    let grant = || {
        let grant = FetchGrant::hosts([&host]).unwrap();
        grant.trust_authorities(&authority.pem).unwrap()
    };

    // The name is public when it is asked first, and private from then on.
    let (resolver, asked) = names(&[&[FIRST], &[SECOND]], admits_the_first);
    let fetcher = Fetcher::with(grant(), resolver);
    assert_eq!(get(&fetcher, &url).await.unwrap()["body"], "good");
    assert_eq!(
        asked.load(Ordering::SeqCst),
        1,
        "a name is asked for once for a connection"
    );
    let error = get(&fetcher, &url).await.unwrap_err();
    assert!(
        error.contains("api.test may not be fetched: it has a private address"),
        "{error}"
    );

    // Both at once: only the public one is tried.
    let (resolver, _) = names(&[&[SECOND, FIRST]], admits_the_first);
    let fetcher = Fetcher::with(grant(), resolver);
    assert_eq!(get(&fetcher, &url).await.unwrap()["body"], "good");

    // No address at all.
    let (resolver, _) = names(&[&[]], admits_the_first);
    let error = get(&Fetcher::with(grant(), resolver), &url)
        .await
        .unwrap_err();
    assert!(error.starts_with("no connection"), "{error}");
    assert_eq!((good.connections(), inside.connections()), (2, 0));
}

#[tokio::test]
async fn every_writing_of_a_private_address_is_the_address() {
    for host in [
        "127.1",
        "127.0.1",
        "0177.0.0.1",
        "0x7f000001",
        "0x7f.0.0.1",
        "2130706433",
        "017700000001",
        "127.0.0.1.",
        "127。0。0。1",
        "127%2E0%2E0%2E1",
        "①②⑦.0.0.1",
        "0",
        "0.0.0.0",
        "10.1",
        "192.168.257",
        "3232235777",
        "169.254.43518",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:7f00:1]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[fe80::1]",
        "[fd00:ec2::254]",
    ] {
        // Who allows such a host by mistake, in the same writing or in the address's own.
        let url = Url::parse(&format!("https://{host}/")).unwrap();
        for listed in [host, url.host_str().unwrap()] {
            let Ok(grant) = FetchGrant::hosts([listed]) else {
                continue;
            };
            let error = get(&Fetcher::new(grant), url.as_str()).await.unwrap_err();
            assert!(
                error.contains("may not be fetched"),
                "{host} as {listed}: {error}"
            );
        }
        let error = get(
            &Fetcher::new(FetchGrant::hosts(["example.com"]).unwrap()),
            url.as_str(),
        )
        .await
        .unwrap_err();
        assert!(error.contains("not on the list"), "{host}: {error}");
    }
}
