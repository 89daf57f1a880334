//! Encrypted connections: who the server is believed to be, by each mode, and who it is not. The servers are MariaDBs
//! with certificates of the test.

use std::path::PathBuf;

use kindex_harness::mariadb::MariaDb;
use kindex_store::{Address, MySqlFields, PoolConfig, StoreError, Tls, TlsMode};
use kindex_tests::databases::mariadb::available;
use tokio::net::{TcpListener, TcpStream};

use super::widget::REGISTRY;

const FIRST: [&str; 2] = [
    include_str!("../../api/tls/first.crt"),
    include_str!("../../api/tls/first.key"),
];

/// A file of the certificates of the tests.
fn certificate(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/tls")).join(name)
}

async fn open(port: u16, host: &str, mode: TlsMode, ca: Option<&str>) -> Result<(), StoreError> {
    let fields = MySqlFields {
        host: host.to_owned(),
        port,
        database: "k".to_owned(),
        tls: Tls {
            mode,
            ca: ca.map(certificate),
            ..Tls::default()
        },
        ..MySqlFields::default()
    };
    let pool = PoolConfig {
        max_open: 2,
        ..PoolConfig::default()
    };
    let store = kindex_store::open(&Address::mysql(&fields), REGISTRY, &pool).expect("an address");
    let prepared = store.prepare().await;
    store.close().await;
    prepared
}

/// The port at which a server of 127.0.0.1 answers at another address of this machine.
async fn also_at(address: &str, port: u16) -> u16 {
    let listener = TcpListener::bind((address, 0)).await.expect("an address of loopback");
    let there = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = TcpStream::connect(("127.0.0.1", port)).await.expect("the server is up");
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
        }
    });
    there
}

#[tokio::test]
async fn each_mode_believes_whom_it_should() {
    if !available() {
        return;
    }
    let [pem, key] = FIRST;
    let server = MariaDb::start_encrypted(pem, key);
    let elsewhere = also_at("127.0.0.2", server.port).await;
    let (first, second) = (Some("first.crt"), Some("second.crt"));
    for (host, mode, ca, is_believed) in [
        ("127.0.0.1", TlsMode::Disabled, None, false),
        ("127.0.0.1", TlsMode::Preferred, None, true),
        ("127.0.0.1", TlsMode::Required, None, true),
        ("127.0.0.1", TlsMode::VerifyCa, first, true),
        ("127.0.0.1", TlsMode::VerifyCa, second, false),
        ("127.0.0.1", TlsMode::VerifyCa, None, false),
        ("127.0.0.1", TlsMode::VerifyIdentity, first, true),
        ("127.0.0.1", TlsMode::VerifyIdentity, second, false),
        // An address that the certificate does not name.
        ("127.0.0.2", TlsMode::VerifyCa, first, true),
        ("127.0.0.2", TlsMode::VerifyIdentity, first, false),
    ] {
        let port = if host == "127.0.0.1" { server.port } else { elsewhere };
        let opened = open(port, host, mode, ca).await;
        assert_eq!(opened.is_ok(), is_believed, "{host} {mode:?} {ca:?}: {opened:?}");
    }
    let in_the_clear = MariaDb::start(&["--skip-ssl"]);
    for (mode, ca, is_content) in [
        (TlsMode::Preferred, None, true),
        (TlsMode::Required, None, false),
        (TlsMode::VerifyIdentity, first, false),
    ] {
        let opened = open(in_the_clear.port, "127.0.0.1", mode, ca).await;
        assert_eq!(opened.is_ok(), is_content, "{mode:?}: {opened:?}");
    }
}
