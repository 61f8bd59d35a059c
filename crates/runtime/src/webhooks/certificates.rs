//! Where the certificate comes from, and the next one after it.
//!
//! The files are usually a mounted Secret, which changes by swapping a symbolic link, so that their content is compared.
//! For a moment they may not fit each other: the last good certificate stays until they do.

use super::authority;
use super::options::{Options, SecretName};
use super::secret::{self, SecretError};
use crate::backoff::Backoff;
use crate::client::Client;
use crate::serve::tls::{self, Pem};
use crate::serve::{Health, ServeError, TlsFiles};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio_rustls::rustls::ServerConfig;
use tracing::{error, info};

/// How often files are looked at.
const FILES: Duration = Duration::from_secs(1);
/// How often the Secret is looked at.
const SECRET: Duration = Duration::from_secs(10);

/// A certificate that can be served.
#[derive(Clone)]
pub struct Certificate {
    /// As it was read.
    pub pem: Pem,
    /// As the server takes it.
    pub config: Arc<ServerConfig>,
}

/// Where certificates come from.
pub enum Source {
    /// Three files.
    Files(TlsFiles),
    /// A Secret, made if it is not there.
    Secret(Client, SecretName),
}

impl Source {
    /// The files if they are there, else the Secret.
    ///
    /// # Errors
    /// When there is neither.
    pub fn of(options: &Options, client: &Client) -> Result<Source, ServeError> {
        let files = options.tls.as_ref();
        match (files, &options.secret) {
            (Some(files), None) => Ok(Source::Files(files.clone())),
            (Some(files), Some(_)) if files.exist() => Ok(Source::Files(files.clone())),
            (_, Some(secret)) => Ok(Source::Secret(client.clone(), secret.clone())),
            (None, None) => Err(ServeError::Certificate {
                flag: "--tls-cert-file",
                file: "\"\"".to_owned(),
                problem: "not given; give all three files of the certificate, or --admission-secret-name"
                    .to_owned(),
            }),
        }
    }

    /// A certificate at once, for the probes: they do not look at it, and must not wait for an API server.
    ///
    /// # Errors
    /// When a file cannot be used, or no certificate can be made.
    pub fn at_once(&self) -> Result<Certificate, ServeError> {
        match self {
            Source::Files(files) => {
                let pem = tls::read(files)?;
                let config = tls::from_files(files, &pem)?;
                Ok(Certificate { pem, config })
            }
            Source::Secret(_, name) => stand_in(name).map_err(|problem| ServeError::Certificate {
                flag: "--admission-secret-name",
                file: name.name.clone(),
                problem,
            }),
        }
    }

    /// The first certificate. A Secret is waited for: the API server may be starting.
    ///
    /// # Errors
    /// When a file cannot be used.
    pub async fn first(&self, health: &Health) -> Result<Certificate, ServeError> {
        match self {
            Source::Files(_) => self.at_once(),
            Source::Secret(client, name) => Ok(patiently(client, name, health).await),
        }
    }

    /// Waits for a certificate that is not the last one.
    pub async fn next(&self, last: &Pem) -> Certificate {
        let mut told = String::new();
        loop {
            let found = match self {
                Source::Files(files) => {
                    tokio::time::sleep(FILES).await;
                    from_files(files)
                }
                Source::Secret(client, name) => {
                    tokio::time::sleep(SECRET).await;
                    from_secret(client, name).await.map_err(|error| error.to_string())
                }
            };
            match found {
                Ok(certificate) if certificate.pem != *last => {
                    info!("the certificate changed");
                    return certificate;
                }
                Ok(_) => told.clear(),
                Err(why) if why != told => {
                    error!("the certificate cannot be read anew and the last good one stays: {why}");
                    told = why;
                }
                Err(_) => {}
            }
        }
    }
}

impl TlsFiles {
    fn exist(&self) -> bool {
        [&self.ca, &self.cert, &self.key].iter().all(|file| file.exists())
    }
}

fn from_files(files: &TlsFiles) -> Result<Certificate, String> {
    let pem = tls::read(files).map_err(|error| error.to_string())?;
    let config = tls::from_files(files, &pem).map_err(|error| error.to_string())?;
    Ok(Certificate { pem, config })
}

async fn from_secret(client: &Client, name: &SecretName) -> Result<Certificate, SecretError> {
    let pem = secret::obtain(client, name).await?;
    match tls::config(&pem) {
        Ok(config) => Ok(Certificate { pem, config }),
        // What is obtained has been checked.
        Err(_) => Err(SecretError::Contended(name.name.clone())),
    }
}

/// A certificate of our own that nobody else gets to know.
fn stand_in(name: &SecretName) -> Result<Certificate, String> {
    let pem = authority::make(name, SystemTime::now()).map_err(|error| error.to_string())?;
    let config = tls::config(&pem).map_err(|error| error.to_string())?;
    Ok(Certificate { pem, config })
}

async fn patiently(client: &Client, name: &SecretName, health: &Health) -> Certificate {
    health.missing(vec![format!(
        "certificate in Secret {}/{}",
        name.namespace, name.name
    )]);
    let mut backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(5));
    let mut told = String::new();
    loop {
        match from_secret(client, name).await {
            Ok(certificate) => return certificate,
            Err(error) => {
                let line = error.to_string();
                if line != told {
                    error!("no certificate yet: {line}");
                    health.missing(vec![format!("certificate ({line})")]);
                    told = line;
                }
            }
        }
        tokio::time::sleep(backoff.wait()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn made() -> Pem {
        let of = SecretName {
            namespace: "n".to_owned(),
            name: "x".to_owned(),
            service: "s".to_owned(),
        };
        authority::make(&of, SystemTime::now()).unwrap()
    }

    fn store(folder: &Path, pem: &Pem) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("ca.crt"), &pem.ca).unwrap();
        fs::write(folder.join("tls.crt"), &pem.cert).unwrap();
        fs::write(folder.join("tls.key"), &pem.key).unwrap();
    }

    fn files(folder: &Path) -> TlsFiles {
        TlsFiles {
            ca: folder.join("ca.crt"),
            cert: folder.join("tls.crt"),
            key: folder.join("tls.key"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_mounted_secret_that_is_swapped_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (one, two) = (made(), made());
        store(&at("1"), &one);
        // Neither of the two: a key that is not that of the certificate.
        store(
            &at("2"),
            &Pem {
                key: one.key.clone(),
                ..two.clone()
            },
        );
        store(&at("3"), &two);
        symlink(at("1"), at("data")).unwrap();
        let source = Source::Files(files(&at("data")));
        let first = source.first(&Health::default()).await.unwrap();
        assert_eq!(first.pem, one);
        let swap = |to: &str| {
            symlink(at(to), at("next")).unwrap();
            fs::rename(at("next"), at("data")).unwrap();
        };
        let waiting = tokio::spawn(async move { source.next(&first.pem).await.pem });
        tokio::time::sleep(FILES * 3).await;
        swap("2");
        tokio::time::sleep(FILES * 3).await;
        assert!(!waiting.is_finished(), "the last good one stays");
        swap("3");
        assert_eq!(waiting.await.unwrap(), two);
    }

    #[tokio::test]
    async fn a_file_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let pem = made();
        store(folder.path(), &pem);
        let files = files(folder.path());
        assert!(files.exist());
        fs::remove_file(&files.key).unwrap();
        assert!(!files.exist());
        let first = Source::Files(files).first(&Health::default()).await;
        let error = first.err().unwrap().to_string();
        assert!(
            error.starts_with("--tls-private-key-file ") && error.contains("tls.key"),
            "{error}"
        );
    }
}
