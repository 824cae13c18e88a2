//! Goal: who has not shown who it is can do little harm. Method: a server with a password, and clients that say nothing, too much, or
//! what browsers say.

use drumlin_fs::net::Address;
use drumlin_testkit::redis::Link;

use crate::ours::{Ours, free_address, port};

fn start(settings: &[(&str, &str)]) -> (Ours, Address) {
    let address = free_address();
    let port = port(&address);
    let all = [&[("port", port.as_str())], settings].concat();
    (Ours::start(&all), address)
}

/// All that comes until the connection ends.
fn rest(link: &mut Link) -> String {
    let mut all = Vec::new();
    while let Some(bytes) = link.receive() {
        all.extend(bytes);
    }
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn who_does_not_authenticate_in_time_is_closed() {
    let (ours, address) = start(&[("requirepass", "pw")]);
    let (mut silent, mut known) = (Link::to(&address), Link::to(&address));
    known.send(b"AUTH pw\r\n");
    assert_eq!(known.receive(), Some(b"+OK\r\n".to_vec()));
    ours.pass(11);
    assert_eq!(rest(&mut silent), "");
    known.send(b"PING\r\nQUIT\r\n");
    assert_eq!(rest(&mut known), "+PONG\r\n+OK\r\n");
}

#[test]
fn who_has_not_authenticated_says_little() {
    let (_ours, address) = start(&[("requirepass", "pw")]);
    for (said, answer) in [
        (
            "*11\r\n".to_owned(),
            "-ERR Protocol error: unauthenticated multibulk length\r\n",
        ),
        (
            "*1\r\n$16385\r\n".to_owned(),
            "-ERR Protocol error: unauthenticated bulk length\r\n",
        ),
        (
            "GET a\r\nQUIT\r\n".to_owned(),
            "-NOAUTH Authentication required.\r\n+OK\r\n",
        ),
    ] {
        let mut link = Link::to(&address);
        link.send(said.as_bytes());
        assert_eq!(rest(&mut link), answer, "{said:?}");
    }
    let mut link = Link::to(&address);
    link.send(b"AUTH pw\r\n*11\r\n$4\r\nMSET\r\n");
    link.send("$1\r\na\r\n".repeat(10).as_bytes());
    link.send(b"QUIT\r\n");
    assert_eq!(rest(&mut link), "+OK\r\n+OK\r\n+OK\r\n");
}

#[test]
fn what_browsers_send_ends_the_connection() {
    let (ours, address) = start(&[]);
    for said in [
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a 1\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nSET a 1\r\n",
        "host: localhost\r\nSET a 1\r\n",
        "MULTI\r\npost x\r\nSET a 1\r\nEXEC\r\n",
    ] {
        let mut link = Link::to(&address);
        link.send(said.as_bytes());
        let answer = rest(&mut link);
        assert!(!answer.contains("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(ours.say(&["EXISTS a"]), ":0\r\n+OK\r\n");
}

/// Goal: what is for clients of this machine is not for others. Method: a unix socket and a port; for others see `traffic`.
#[test]
fn options_that_are_local_let_local_clients_through() {
    let (ours, address) = start(&[("enable-debug-command", "local")]);
    assert_eq!(ours.say(&["DEBUG SLEEP 0"]), "+OK\r\n+OK\r\n");
    let mut link = Link::to(&address);
    link.send(b"DEBUG SLEEP 0\r\nMODULE LOAD x\r\nMODULE LIST\r\nCONFIG SET dbfilename x\r\nCLIENT LIST\r\nQUIT\r\n");
    let said = rest(&mut link);
    assert!(
        said.starts_with("+OK\r\n-ERR MODULE command not allowed."),
        "{said}"
    );
    assert!(said.contains("*0\r\n-ERR CONFIG SET failed"), "{said}");
    assert!(said.contains("can't set protected config"), "{said}");
    let (ours, _) = start(&[("enable-protected-configs", "local")]);
    let said = ours.say(&[
        "DEBUG SLEEP 0",
        "CONFIG SET dbfilename x",
        "CLIENT LIST",
        "SHUTDOWN ABORT",
        "SHUTDOWN SAVE NOSAVE",
        "SHUTDOWN ABORT NOW",
    ]);
    assert!(
        said.starts_with("-ERR DEBUG command not allowed."),
        "{said}"
    );
    assert!(
        said.contains("+OK\r\n") && said.contains("socket:0 laddr=/"),
        "{said}"
    );
    assert!(
        said.ends_with(
            "-ERR No shutdown in progress.\r\n-ERR syntax error\r\n-ERR syntax error\r\n+OK\r\n"
        ),
        "{said}"
    );
}
