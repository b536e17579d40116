//! Heads of requests, as tables.

use super::*;

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(name, value)| {
            (
                name.parse().expect("a name"),
                value.parse().expect("a value"),
            )
        })
        .fold(
            HeaderMap::new(),
            |mut headers, (name, value): (hyper::header::HeaderName, HeaderValue)| {
                headers.append(name, value);
                headers
            },
        )
}

fn config() -> GatewayHttpConfig {
    GatewayHttpConfig::new("127.0.0.1:0".parse().expect("an address"))
}

#[test]
fn at_loopback_only_the_machines_own_names_and_pages_are_served() {
    let allowed = config()
        .allow_origin("https://app.example")
        .allow_host("gateway.internal:8080");
    for (lines, ok) in [
        (vec![], true),
        (vec![("host", "127.0.0.1:8080")], true),
        (vec![("host", "localhost")], true),
        (vec![("host", "LOCALHOST:1")], true),
        (vec![("host", "[::1]:8080")], true),
        (vec![("host", "gateway.internal:8080")], true),
        (vec![("host", "evil.example:8080")], false),
        (vec![("host", "127.0.0.1.evil.example")], false),
        (vec![("host", "")], false),
        (vec![("origin", "http://localhost:3000")], true),
        (vec![("origin", "http://[::1]:3000")], true),
        (vec![("origin", "https://app.example")], true),
        (vec![("origin", "https://evil.example")], false),
        (vec![("origin", "null")], false),
        (vec![("origin", "http://localhost.evil.example")], false),
        (
            vec![("host", "localhost"), ("origin", "https://evil.example")],
            false,
        ),
    ] {
        assert_eq!(
            check_origin(&headers(&lines), true, &allowed).is_ok(),
            ok,
            "{lines:?}"
        );
    }
    // Elsewhere any name may lead here, but pages are still refused unless they are named.
    assert!(check_origin(&headers(&[("host", "mcp.example")]), false, &allowed).is_ok());
    assert!(check_origin(&headers(&[("origin", "http://localhost")]), false, &allowed).is_err());
}

#[test]
fn the_token_must_be_whole_and_right() {
    for (given, ok) in [
        (Some("Bearer sesame"), true),
        (Some("bearer  sesame"), true),
        (Some("Bearer sesam"), false),
        (Some("Bearer sesamee"), false),
        (Some("Bearer "), false),
        (Some("Basic sesame"), false),
        (Some("sesame"), false),
        (None, false),
    ] {
        let lines: Vec<_> = given
            .map(|given| ("authorization", given))
            .into_iter()
            .collect();
        assert_eq!(
            check_token(&headers(&lines), Some("sesame")).is_ok(),
            ok,
            "{given:?}"
        );
        assert!(check_token(&headers(&lines), None).is_ok());
    }
}

#[test]
fn what_a_caller_takes_decides_between_json_and_a_stream() {
    for (accept, expected) in [
        (Some("application/json, text/event-stream"), Some(true)),
        (Some("text/event-stream;q=0.5"), Some(true)),
        (Some("application/json"), Some(false)),
        (Some("*/*"), Some(false)),
        (None, Some(false)),
        (Some("text/html"), None),
    ] {
        let lines: Vec<_> = accept
            .map(|accept| ("accept", accept))
            .into_iter()
            .collect();
        assert_eq!(accepted(&headers(&lines)).ok(), expected, "{accept:?}");
    }
    assert!(
        check_content_type(&headers(&[(
            "content-type",
            "application/json; charset=utf-8"
        )]))
        .is_ok()
    );
    assert!(check_content_type(&headers(&[])).is_ok());
    assert!(check_content_type(&headers(&[("content-type", "text/plain")])).is_err());
}

fn request(name: &str, params: Value) -> IncomingRequest {
    IncomingRequest {
        id: 7.into(),
        method: name.into(),
        params,
    }
}

fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

#[test]
fn header_and_body_say_the_era() {
    let bare = Incoming::Request(request("tools/list", json!({})));
    let new = Incoming::Request(request("tools/list", modern(json!({}))));
    for (version, first, expected) in [
        (None, &bare, Some(Era::Legacy)),
        (Some("2025-06-18"), &bare, Some(Era::Legacy)),
        (Some("2026-07-28"), &bare, Some(Era::Modern)),
        (Some("2025-06-18"), &new, Some(Era::Modern)),
        (None, &new, Some(Era::Modern)),
        (Some("1999-01-01"), &bare, None),
    ] {
        let lines: Vec<_> = version
            .map(|version| ("mcp-protocol-version", version))
            .into_iter()
            .collect();
        let found = era(&headers(&lines), Some(first));
        assert_eq!(found.as_ref().ok().copied(), expected, "{version:?}");
        if let Err(refusal) = found {
            assert_eq!(
                (refusal.status, refusal.error.code),
                (StatusCode::BAD_REQUEST, code::UNSUPPORTED_VERSION)
            );
            assert_eq!(refusal.id, Some(7.into()));
        }
    }
}

#[test]
fn a_modern_request_repeats_itself_in_its_headers() {
    let call = request(
        "tools/call",
        modern(json!({"name": "größe", "arguments": {}})),
    );
    let right = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "=?base64?Z3LDtsOfZQ==?="),
    ];
    assert!(check_modern_request(&headers(&right), &call).is_ok());
    for (wrong, expected) in [
        (vec![right[1], right[2]], code::HEADER_MISMATCH),
        (
            vec![("mcp-protocol-version", "2025-11-25"), right[1], right[2]],
            code::HEADER_MISMATCH,
        ),
        (vec![right[0], right[2]], code::HEADER_MISMATCH),
        (
            vec![right[0], ("mcp-method", "tools/list"), right[2]],
            code::HEADER_MISMATCH,
        ),
        (vec![right[0], right[1]], code::HEADER_MISMATCH),
        (
            vec![right[0], right[1], ("mcp-name", "other")],
            code::HEADER_MISMATCH,
        ),
        (
            vec![right[0], right[1], ("mcp-name", "=?base64?!!?=")],
            code::HEADER_MISMATCH,
        ),
    ] {
        let refusal = check_modern_request(&headers(&wrong), &call).expect_err("refused");
        assert_eq!(
            (refusal.status, refusal.error.code),
            (StatusCode::BAD_REQUEST, expected),
            "{wrong:?}"
        );
    }
    let list = request("tools/list", modern(json!({})));
    let right = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    assert!(check_modern_request(&headers(&right), &list).is_ok());
    let refusal = check_modern_request(&headers(&right), &request("tools/list", json!({})))
        .expect_err("no metadata");
    assert_eq!(
        (refusal.status, refusal.error.code),
        (StatusCode::BAD_REQUEST, INVALID_PARAMS)
    );
}
