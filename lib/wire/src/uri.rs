//! The identity and address of a server in one line, `NSPACE.RANK;tcp4://ADDRESS:PORT`.

use core::net::{IpAddr, SocketAddr};
use std::fmt;

use phalanx_spec::Rank;

use crate::name::{Nspace, ProcId};

/// The line that environment variables, rendezvous files and attributes carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUri {
    /// A dot in the namespace is legal here, but a tool that gets the line as an attribute would misread it.
    pub server: ProcId,
    pub address: SocketAddr,
}

/// Why a line is not a server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriError {
    pub uri: String,
    pub problem: &'static str,
}

impl ServerUri {
    pub fn parse(uri: &str) -> Result<ServerUri, UriError> {
        let fail = |problem| UriError { uri: uri.chars().take(SHOWN).collect(), problem };
        let (identity, address) =
            uri.split_once(';').ok_or_else(|| fail("there is no `;` behind the server's name"))?;
        let (nspace, rank) =
            identity.rsplit_once('.').ok_or_else(|| fail("there is no rank in the server's name"))?;
        let nspace = Nspace::new(nspace).map_err(|_| fail("the server's namespace is too long"))?;
        let rank = rank.parse().map(Rank).map_err(|_| fail("the server's rank is not a number"))?;
        let address = parse_address(address).map_err(fail)?;
        Ok(ServerUri { server: ProcId { nspace, rank }, address })
    }

    /// The form in which a server reports itself through a pipe, and which an attribute of a client may have: preceded by the
    /// names of environment variables.
    pub fn parse_with_variables(text: &str) -> Result<ServerUri, UriError> {
        match text.split_once(';') {
            Some((names, uri)) if uri.contains(';') && !names.contains('.') => ServerUri::parse(uri),
            _ => ServerUri::parse(text),
        }
    }

    /// `tcp4://127.0.0.1:33017`
    pub fn address_text(&self) -> String {
        address_text(self.address)
    }
}

/// `tcp4://127.0.0.1:33017`, `tcp6://[::1]:33017`
pub fn address_text(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) => format!("tcp4://{ip}:{}", address.port()),
        IpAddr::V6(ip) => format!("tcp6://[{ip}]:{}", address.port()),
    }
}

/// The reverse of [`address_text`]; the brackets may be missing.
pub fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    let (v4, rest) = match (text.strip_prefix("tcp4://"), text.strip_prefix("tcp6://")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return Err("the address begins with neither tcp4:// nor tcp6://"),
    };
    let (host, port) = rest.rsplit_once(':').ok_or("there is no port")?;
    let port = port.trim_end().parse().map_err(|_| "the port is not a number below 65536")?;
    let ip = if v4 {
        IpAddr::V4(host.parse().map_err(|_| "the host is not an IPv4 address")?)
    } else {
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        IpAddr::V6(host.parse().map_err(|_| "the host is not an IPv6 address")?)
    };
    Ok(SocketAddr::new(ip, port))
}

impl fmt::Display for ServerUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{};{}", self.server.nspace, self.server.rank.0, self.address_text())
    }
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a server's address: {}", self.uri, self.problem)
    }
}

impl std::error::Error for UriError {}

/// How many characters of an invalid line an error repeats.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip() {
        for text in [
            "prte-vm-9041@0.0;tcp4://127.0.0.1:33017",
            "a.b.c.4294967295;tcp6://[::1]:1",
            "pmix-server.812;tcp4://10.0.0.2:65535",
        ] {
            assert_eq!(ServerUri::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(ServerUri::parse("x.0;tcp6://fe80::1:7").unwrap().address_text(), "tcp6://[fe80::1]:7");
        let uri = ServerUri::parse_with_variables("PMIX_SERVER_URI41:PMIX_SERVER_URI4;x.0;tcp4://1.2.3.4:5")
            .unwrap();
        assert_eq!(uri.to_string(), "x.0;tcp4://1.2.3.4:5");
        assert_eq!(ServerUri::parse_with_variables("x.0;tcp4://1.2.3.4:5").unwrap(), uri);
    }

    #[test]
    fn errors_name_the_problem() {
        for (text, problem) in [
            ("", "`;`"),
            ("x;tcp4://1.2.3.4:5", "no rank"),
            ("x.y;tcp4://1.2.3.4:5", "not a number"),
            ("x.0;tcp4://1.2.3.4", "no port"),
            ("x.0;tcp4://1.2.3.4:99999", "port"),
            ("x.0;tcp4://host:5", "IPv4"),
            ("x.0;unix:///tmp/x:5", "neither"),
        ] {
            let error = ServerUri::parse(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
