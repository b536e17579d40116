//! The fast server: one fixed answer, with the id of the request, over a pipe or HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Child;

/// The request as a minimal client writes it.
pub(crate) const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;

/// The answer to a request.
pub(crate) fn answer(request: &[u8]) -> Vec<u8> {
    let id = id_of(request);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"hello"}}],"isError":false}}}}"#)
        .into_bytes()
}

fn id_of(request: &[u8]) -> &str {
    const KEY: &[u8] = b"\"id\":";
    let Some(at) = request.windows(KEY.len()).position(|window| window == KEY) else {
        return "null";
    };
    let rest = &request[at + KEY.len()..];
    let end = rest
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(rest.len());
    std::str::from_utf8(&rest[..end]).unwrap_or("null")
}

pub(crate) fn stdio() {
    let mut out = std::io::stdout().lock();
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut line = Vec::new();
    while input
        .read_until(b'\n', &mut line)
        .is_ok_and(|read| read > 0)
    {
        let mut bytes = answer(&line);
        bytes.push(b'\n');
        if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
            return;
        }
        line.clear();
    }
}

pub(crate) fn http() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    println!("{}", listener.local_addr().expect("its number").port());
    for stream in listener.incoming().flatten() {
        std::thread::spawn(move || connection(stream));
    }
}

fn connection(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let head = loop {
            if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            match stream.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(read) => buffer.extend_from_slice(&chunk[..read]),
            }
        };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let length = text
            .split("content-length:")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.trim().parse().ok());
        let end = head + length.unwrap_or(0usize);
        while buffer.len() < end {
            match stream.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(read) => buffer.extend_from_slice(&chunk[..read]),
            }
        }
        let body = answer(&buffer[head..end]);
        buffer.drain(..end);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream
            .write_all(&[head.as_bytes(), &body].concat())
            .is_err()
        {
            return;
        }
    }
}

/// The port that a server printed.
pub(crate) fn port_of(child: &mut Child) -> u16 {
    let mut line = String::new();
    let output = child.stdout.take().expect("its output");
    let _ = BufReader::new(output).read_line(&mut line);
    line.trim().parse().expect("a port")
}
