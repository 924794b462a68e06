//! The parts of a URL, `postgres://user:password@host,host/database?parameter=value`, decoded and
//! checked.
//!
//! No message repeats a part that may be a password: messages have the names of parameters, hosts, and
//! values of parameters that are words.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::LazyLock;
use std::time::Duration;

use openkv_core::model::{
    Error, POSTGRES_CONNECT_TIMEOUT_S_DEFAULT, POSTGRES_CONNECT_TIMEOUT_S_MAX, POSTGRES_HOSTS_MAX,
    POSTGRES_NAME_BYTES_MAX, Result,
};

/// The parameters of a URL.
const PARAMETERS: [&str; 6] =
    ["kv", "lead", "sslmode", "sslrootcert", "application_name", "connect_timeout"];

/// The name of the database where the URL has none.
const NAME_DEFAULT: &str = "default";

/// The name that PostgreSQL shows for the connections of this library.
const APPLICATION: &str = "openkv";

/// The port of PostgreSQL.
const PORT: u16 = 5432;

/// A password appears in identities as a hash under random keys of this process.
static PASSWORDS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Whether the connection is encrypted, and what of the server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// None.
    Disable,
    /// Encrypted; the certificate is not checked.
    Require,
    /// Encrypted; the certificate must be of a trusted issuer and for the host.
    VerifyFull,
}

impl Encryption {
    fn parse(text: &str) -> Result<Self> {
        match text {
            "disable" => Ok(Self::Disable),
            "require" => Ok(Self::Require),
            "verify-full" => Ok(Self::VerifyFull),
            _ => Err(invalid("sslmode is disable, require or verify-full")),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Require => "require",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// One of the hosts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// A name, an address, or the folder of a Unix socket.
    pub(super) name: String,
    pub(super) port: u16,
}

impl Host {
    /// A host of the comma-separated list, with or without a port.
    fn parse(text: &str) -> Result<Self> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest
                    .split_once(']')
                    .ok_or_else(|| invalid("an IPv6 address ends with a bracket: [::1]"))?;
                let port = match rest.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if rest.is_empty() => None,
                    None => return Err(invalid("a port follows a colon: [::1]:5432")),
                };
                if address.parse::<std::net::Ipv6Addr>().is_err() {
                    return Err(invalid("there is no IPv6 address between the brackets"));
                }
                (address.to_owned(), port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (decoded(name, "host")?, Some(port)),
                None => (decoded(text, "host")?, None),
            },
        };
        if name.is_empty() {
            return Err(invalid("it names no host: postgres://user:password@host/database"));
        }
        let port = match port {
            None | Some("") => PORT,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port != 0)
                .ok_or_else(|| invalid("a port is a number from 1 to 65535"))?,
        };
        Ok(Self { name, port })
    }

    fn is_socket(&self) -> bool {
        self.name.starts_with('/')
    }

    /// Whether no other machine can read the traffic.
    fn is_here(&self) -> bool {
        let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
        self.is_socket()
            || self.name.eq_ignore_ascii_case("localhost")
            || self.name.parse().is_ok_and(is_loopback)
    }
}

/// The parts of a URL, decoded and checked.
pub(super) struct Parts {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) hosts: Vec<Host>,
    pub(super) database: String,
    pub(super) kv: String,
    pub(super) encryption: Encryption,
    pub(super) root_certificates: Option<String>,
    pub(super) application: String,
    /// The name of this process as the leader of its databases.
    pub(super) leads_as: Option<String>,
    pub(super) connect_timeout: Duration,
    /// Whether it has a parameter of a single openkv database.
    pub(super) names_database: bool,
}

impl Parts {
    /// # Errors
    /// `Invalid` for what is malformed, missing or unknown.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let rest = without_scheme(url)?;
        if rest.contains('#') {
            return Err(invalid("it has no fragment: write # as %23"));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, password, hosts) = match authority.split_once('@') {
            Some((_, hosts)) if hosts.contains('@') => {
                return Err(invalid("an @ in the user or the password is written as %40"));
            }
            Some((login, hosts)) => {
                let (user, password) = match login.split_once(':') {
                    Some((user, password)) => (user, Some(decoded(password, "password")?)),
                    None => (login, None),
                };
                (Some(decoded(user, "user")?).filter(|user| !user.is_empty()), password, hosts)
            }
            None => (None, None, authority),
        };
        let hosts = hosts.split(',').map(Host::parse).collect::<Result<Vec<_>>>()?;
        if hosts.len() > POSTGRES_HOSTS_MAX {
            return Err(invalid(&format!("it names more than {POSTGRES_HOSTS_MAX} hosts")));
        }
        let database = decoded(database, "database")?;
        if database.is_empty() {
            return Err(invalid(
                "it names no database of the server: postgres://user:password@host/database",
            ));
        }
        let are_here = hosts.iter().all(Host::is_here);
        let mut parts = Self {
            user,
            password,
            hosts,
            database,
            kv: NAME_DEFAULT.to_owned(),
            encryption: Encryption::Disable,
            root_certificates: None,
            application: APPLICATION.to_owned(),
            leads_as: None,
            connect_timeout: Duration::from_secs(POSTGRES_CONNECT_TIMEOUT_S_DEFAULT),
            names_database: false,
        };
        // A file of issuers is there to be used, on this machine too.
        let sslmode = parts.read(query)?;
        let is_verified = !are_here || parts.root_certificates.is_some();
        let unasked = if is_verified { Encryption::VerifyFull } else { Encryption::Disable };
        parts.encryption = sslmode.unwrap_or(unasked);
        if parts.encryption != Encryption::Disable && parts.hosts.iter().any(Host::is_socket) {
            return Err(invalid("a Unix socket has no TLS: leave sslmode out"));
        }
        if parts.encryption != Encryption::VerifyFull && parts.root_certificates.is_some() {
            return Err(invalid("sslrootcert is for sslmode=verify-full"));
        }
        Ok(parts)
    }

    /// Reads the parameters; returns `sslmode`, which has no fixed default.
    fn read(&mut self, query: &str) -> Result<Option<Encryption>> {
        let mut sslmode = None;
        let mut seen: Vec<&str> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let Some(known) = PARAMETERS.into_iter().find(|known| *known == name) else {
                return Err(unknown(name));
            };
            if seen.contains(&known) {
                return Err(invalid(&format!("the parameter {known} is there twice")));
            }
            seen.push(known);
            self.names_database |= ["kv", "lead"].contains(&known);
            let value = decoded(value, known)?;
            match known {
                "kv" => self.kv = name_of(value, known)?,
                "lead" => self.leads_as = Some(name_of(value, known)?),
                "sslmode" => sslmode = Some(Encryption::parse(&value)?),
                "sslrootcert" => self.root_certificates = Some(value),
                "application_name" => self.application = value,
                _ => self.connect_timeout = seconds(&value)?,
            }
        }
        Ok(sslmode)
    }

    /// Parts that say which server it is, as whom, and how safely. The others do not.
    pub(super) fn identity(&self) -> String {
        let hosts: Vec<_> =
            self.hosts.iter().map(|host| format!("{}:{}", host.name, host.port)).collect();
        let password = self.password.as_ref().map(|password| PASSWORDS.hash_one(password));
        format!(
            "{:?} {:?} {password:x?} {:?} {} {:?}",
            hosts,
            self.user,
            self.database,
            self.encryption.name(),
            self.root_certificates
        )
    }
}

fn without_scheme(url: &str) -> Result<&str> {
    let known = url.split_once("://").filter(|(scheme, _)| {
        ["postgres", "postgresql"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
    });
    known
        .map(|(_, rest)| rest)
        .ok_or_else(|| invalid("it begins with postgres:// or postgresql://"))
}

/// An unknown parameter. Of an unencoded password that holds a `?` or a `/`, parts would look like
/// the name of one, so only what may be a name is repeated.
fn unknown(name: &str) -> Error {
    let is_name = !name.is_empty()
        && name.len() <= 32
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let shown = if is_name { format!(" {name}") } else { String::new() };
    invalid(&format!("unknown parameter{shown}: known are {}", PARAMETERS.join(", ")))
}

fn name_of(value: String, parameter: &str) -> Result<String> {
    if (1..=POSTGRES_NAME_BYTES_MAX).contains(&value.len()) {
        return Ok(value);
    }
    Err(invalid(&format!("{parameter} is a name of 1 to {POSTGRES_NAME_BYTES_MAX} bytes")))
}

fn seconds(text: &str) -> Result<Duration> {
    let number = text.parse().ok().filter(|s| (1..=POSTGRES_CONNECT_TIMEOUT_S_MAX).contains(s));
    number.map(Duration::from_secs).ok_or_else(|| {
        invalid(&format!(
            "connect_timeout is a whole number of seconds from 1 to \
             {POSTGRES_CONNECT_TIMEOUT_S_MAX}"
        ))
    })
}

/// The text of a part of a URL, without its percent encoding.
fn decoded(text: &str, part: &str) -> Result<String> {
    let malformed = || invalid(&format!("the {part} is malformed: write % as %25"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(malformed()) };
        bytes.push(u8::try_from(high * 16 + low).map_err(|_| malformed())?);
    }
    let decoded = String::from_utf8(bytes).map_err(|_| malformed())?;
    if decoded.contains('\0') && part != "kv" {
        return Err(invalid(&format!("the {part} has a zero byte")));
    }
    Ok(decoded)
}

/// An error in a URL.
pub(super) fn invalid(why: &str) -> Error {
    Error::invalid(format!("Invalid PostgreSQL URL: {why}"))
}
