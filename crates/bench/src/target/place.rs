//! Where a server is: `http://host:port`, and the process behind a port of this machine.

use std::fs;

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Place {
    /// Reads `http://host:port`, `http://host` or `host:port`.
    pub(crate) fn parse(url: &str, port_if_none: u16) -> Result<Self, String> {
        if url.starts_with("https:") {
            return Err(format!(
                "`{url}`: https is not spoken; put a proxy that ends it on this machine"
            ));
        }
        let rest = url.strip_prefix("http://").unwrap_or(url);
        let rest = rest.trim_end_matches('/');
        // An IPv6 host stands in brackets, and only behind them is a port.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let fault = |_| format!("`{url}`: the port is `{port}`, not a number to 65535");
                (host, port.parse().map_err(fault)?)
            }
            _ => (rest, port_if_none),
        };
        if host.is_empty() || host.contains('/') {
            return Err(format!("`{url}` is not http://HOST or http://HOST:PORT"));
        }
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    /// `host:port`.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The process that listens here, if it is on this machine and this user may look.
    pub(crate) fn process(&self) -> Option<u32> {
        let host = self.host.as_str();
        if !["localhost", "[::1]"].contains(&host) && !host.starts_with("127.") {
            return None;
        }
        let sockets = ["/proc/net/tcp", "/proc/net/tcp6"];
        let inode = sockets
            .iter()
            .find_map(|table| listening_inode(&fs::read_to_string(table).ok()?, self.port))?;
        let wanted = format!("socket:[{inode}]");
        let processes = fs::read_dir("/proc").ok()?.flatten();
        processes
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .find(|id| holds(*id, &wanted))
    }
}

/// State of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// Inode of the socket that listens on `port`.
fn listening_inode(table: &str, port: u16) -> Option<String> {
    let ending = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1)?.ends_with(&ending) && *words.get(3)? == LISTEN;
        is_it.then(|| words.get(9).map(|inode| (*inode).to_owned()))?
    })
}

fn holds(process: u32, wanted: &str) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{process}/fd")) else {
        return false;
    };
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|link| link.as_os_str() == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_and_a_fault_in_it_is_named() {
        for (url, host, port) in [
            ("http://localhost:6333", "localhost", 6333),
            ("http://db.example/", "db.example", 7),
            ("127.0.0.1:80", "127.0.0.1", 80),
            ("http://[::1]", "[::1]", 7),
            ("http://[::1]:9", "[::1]", 9),
        ] {
            let place = Place::parse(url, 7).unwrap();
            assert_eq!((place.host.as_str(), place.port), (host, port), "{url}");
        }
        for (url, fault) in [
            ("https://db", "https"),
            ("http://db:70000", "port is `70000`"),
            ("http://db/x", "is not http"),
        ] {
            let text = Place::parse(url, 7).unwrap_err();
            assert!(text.contains(fault), "{text}");
        }
    }

    #[test]
    fn the_process_behind_a_port_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let place = Place::parse(&format!("127.0.0.1:{port}"), 0).unwrap();
        assert_eq!(place.process(), Some(std::process::id()));
        drop(socket);
        assert_eq!(place.process(), None);
        let far = Place::parse("db.example:80", 0).unwrap();
        assert_eq!(far.process(), None);
    }
}
