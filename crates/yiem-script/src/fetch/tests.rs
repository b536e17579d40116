use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

mod https;

/// A server that gives one answer to each connection, and tells what it was asked.
async fn server(answers: Vec<String>) -> (u16, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    #[expect(
        clippy::disallowed_methods,
        reason = "the test awaits it or ends with it"
    )]
    let handle = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 65_536];
            let mut read = 0;
            loop {
                read += socket.read(&mut bytes[read..]).await.unwrap();
                let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length: usize = head
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length: "))
                    .map_or(0, |n| n.parse().unwrap());
                if body.len() >= length {
                    asked.push(text);
                    break;
                }
            }
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
        asked
    });
    (port, handle)
}

fn answer(head: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn local(port: u16) -> FetchGrant {
    FetchGrant::hosts([format!("127.0.0.1:{port}")])
        .unwrap()
        .allow_http()
        .allow_private_addresses()
}

async fn fetch(grant: FetchGrant, request: Value) -> Result<Value, String> {
    let Value::Object(request) = request else {
        panic!()
    };
    Fetcher::new(grant).fetch(request).await
}

#[test]
fn hosts_are_let_through_by_their_names() {
    let grant = FetchGrant::hosts([
        "Api.Example.com",
        "*.example.org",
        "files.example.net:8443",
        "bücher.example",
        "93.184.216.34",
        "[2606:4700::1111]",
    ])
    .unwrap();
    for url in [
        "https://api.example.com/x",
        "https://API.EXAMPLE.COM/",
        "https://api.example.com:443/",
        "https://a.example.org/",
        "https://a.b.example.org/",
        "https://files.example.net:8443/",
        "https://xn--bcher-kva.example/",
        "https://93.184.216.34/",
        "https://[2606:4700::1111]/",
    ] {
        assert_eq!(grant.refuse(&Url::parse(url).unwrap()), None, "{url}");
    }
    for (url, expected) in [
        ("https://example.com/", "not on the list"),
        ("https://evilapi.example.com/", "not on the list"),
        ("https://api.example.com.evil.com/", "not on the list"),
        ("https://api.example.com./", "not on the list"),
        ("https://example.org/", "not on the list"),
        ("https://notexample.org/", "not on the list"),
        (
            "https://api.example.com:8443/",
            "api.example.com:8443 may not be fetched",
        ),
        ("https://files.example.net/", "not on the list"),
        (
            "http://api.example.com/",
            "http addresses may not be fetched",
        ),
        ("file:///etc/passwd", "file addresses may not be fetched"),
        ("ftp://api.example.com/", "ftp addresses"),
        ("data:text/plain,x", "data addresses"),
        ("https://user:secret@api.example.com/", "user name"),
        ("https://api.example.com@evil.com/", "user name"),
        ("https://127.0.0.1/", "not on the list"),
        ("https://2130706433/", "127.0.0.1 may not be fetched"),
        ("https://0x7f.1/", "127.0.0.1 may not be fetched"),
    ] {
        let refused = grant.refuse(&Url::parse(url).unwrap()).unwrap();
        assert!(
            refused.contains(expected) && !refused.contains("secret"),
            "{url}: {refused}"
        );
    }
    for pattern in [
        "",
        "*",
        "*.",
        "*.com",
        "https://example.com",
        "example.com/x",
        "a b",
        "*.*.com",
        "user@example.com",
        "ex*mple.com",
        "*.1.2.3.4",
    ] {
        assert!(FetchGrant::hosts([pattern]).is_err(), "{pattern}");
    }
}

#[tokio::test]
async fn private_addresses_are_refused_by_name_and_by_number() {
    for host in [
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
    ] {
        let grant = FetchGrant::hosts([host]).unwrap();
        let error = fetch(grant, json!({"url": format!("https://{host}/")}))
            .await
            .unwrap_err();
        assert!(error.contains("private address"), "{host}: {error}");
    }
    // A name that resolves to one.
    let (port, server) = server(vec![answer("200 OK", "secret")]).await;
    let host = format!("localhost:{port}");
    let grant = FetchGrant::hosts([&host]).unwrap().allow_http();
    let error = fetch(grant, json!({"url": format!("http://{host}/")}))
        .await
        .unwrap_err();
    assert!(
        error.contains("localhost may not be fetched: it has a private address"),
        "{error}"
    );
    assert!(!server.is_finished());
    server.abort();
}

#[tokio::test]
async fn a_request_goes_out_and_its_answer_comes_back() {
    let (port, server) = server(vec![answer("201 Created\r\nx-a: 1\r\nx-a: 2", "grüße")]).await;
    let request = json!({
        "url": format!("http://127.0.0.1:{port}/p?q=1"), "method": "post",
        "headers": {"X-Key": "k"}, "body": {"a": 1},
    });
    let reply = fetch(local(port), request).await.unwrap();
    assert_eq!(
        (&reply["status"], &reply["headers"]["x-a"], &reply["body"]),
        (&json!(201), &json!("1, 2"), &json!("grüße"))
    );
    let asked = server.await.unwrap().remove(0);
    for part in [
        "POST /p?q=1 HTTP/1.1",
        "x-key: k",
        "content-type: application/json",
        "{\"a\":1}",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[tokio::test]
async fn redirects_are_followed_only_within_the_list() {
    let (port, server) = server(vec![
        answer("302 Found\r\nlocation: /next", ""),
        answer("200 OK", "here"),
        answer(
            "302 Found\r\nlocation: http://169.254.169.254/latest/meta-data",
            "",
        ),
        answer("302 Found\r\nlocation: http://localhost:1/", ""),
        answer("302 Found\r\nlocation: file:///etc/passwd", ""),
        answer("302 Found\r\nlocation: //evil.example/", ""),
    ])
    .await;
    let url = format!("http://127.0.0.1:{port}/start");
    let reply = fetch(
        local(port),
        json!({"url": url, "method": "POST", "body": "x"}),
    )
    .await
    .unwrap();
    assert_eq!(reply["body"], "here");
    assert_eq!(reply["url"], format!("http://127.0.0.1:{port}/next"));
    for expected in [
        "169.254.169.254 may not",
        "localhost:1 may not",
        "file addresses",
        "evil.example may not",
    ] {
        let error = fetch(local(port), json!({ "url": url })).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let asked = server.await.unwrap();
    assert!(asked[0].starts_with("POST /start") && asked[1].starts_with("GET /next"));
}

#[tokio::test]
async fn a_loop_of_redirects_and_a_large_answer_have_an_end() {
    let (port, _server) = server(vec![answer("302 Found\r\nlocation: /again", ""); 6]).await;
    let error = fetch(
        local(port),
        json!({"url": format!("http://127.0.0.1:{port}/")}),
    )
    .await
    .unwrap_err();
    assert_eq!(error, "there were more than 5 redirects");
    let (port, _server) = server(vec![answer("200 OK", &"x".repeat(2000))]).await;
    let error = fetch(
        local(port).max_bytes(1000),
        json!({"url": format!("http://127.0.0.1:{port}/")}),
    )
    .await
    .unwrap_err();
    assert_eq!(error, "the answer is larger than 1000 bytes");
}

#[tokio::test]
async fn odd_requests_are_refused_before_anything_is_sent() {
    for (request, expected) in [
        (json!({"url": "nonsense"}), "is no address"),
        (json!({}), "is no address"),
        (
            json!({"url": "https://a.example", "method": "CONNECT"}),
            "may not be used",
        ),
        (
            json!({"url": "https://a.example", "headers": {"Host": "b"}}),
            "may not be set",
        ),
        (
            json!({"url": "https://a.example", "headers": {"a\nb": "c"}}),
            "no name of a header",
        ),
        (
            json!({"url": "https://a.example", "headers": {"a": "b\r\nc: d"}}),
            "cannot",
        ),
        (
            json!({"url": "https://a.example", "headers": {"a": 1}}),
            "must be a text",
        ),
        (
            json!({"url": "https://a.example", "headers": [1]}),
            "an object of texts",
        ),
    ] {
        let error = fetch(FetchGrant::hosts(["a.example"]).unwrap(), request)
            .await
            .unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let error = fetch(local(1), json!({"url": "http://127.0.0.1:1/?key=secret"}))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("no connection") && !error.contains("secret"),
        "{error}"
    );
}
