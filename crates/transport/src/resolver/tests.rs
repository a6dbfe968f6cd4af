use std::fs;
use std::future::poll_fn;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use super::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A path nobody else uses; what is there is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("coapway-hosts-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }

    fn with(content: &str) -> io::Result<Self> {
        let scratch = Self::new();
        fs::write(&scratch.0, content)?;
        Ok(scratch)
    }

    fn resolver(&self) -> io::Result<Resolver> {
        Resolver::new(Source::Hosts(self.0.clone()), 1, 1)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

async fn finished(resolver: &mut Resolver) -> Result<Finished, tokio::time::error::Elapsed> {
    // Long: the system may have to ask a name server that is not there.
    timeout(Duration::from_secs(30), poll_fn(|cx| resolver.poll_finished(cx))).await
}

async fn addresses(
    resolver: &mut Resolver,
    name: &str,
) -> Result<Result<Vec<IpAddr>, LookupError>, Box<dyn std::error::Error>> {
    resolver.look_up(7, name)?;
    let finished = finished(resolver).await?;
    assert_eq!(finished.id, 7);
    Ok(finished.addresses)
}

fn list(addresses: &[&str]) -> Result<Vec<IpAddr>, LookupError> {
    Ok(addresses.iter().map(|address| address.parse().expect("an address")).collect())
}

#[tokio::test]
async fn reads_names_of_both_families_from_a_hosts_file() -> Outcome {
    let file = Scratch::with(
        "# origins\n192.0.2.1\torigin.example alias # first\n2001:db8::1 Origin.Example.\n\
         192.0.2.1 origin.example\nfe80::1%eth0 scoped\nnonsense\n192.0.2.9 #commented\n",
    )?;
    let mut resolver = file.resolver()?;
    assert_eq!(addresses(&mut resolver, "ORIGIN.example.").await?, list(&["192.0.2.1", "2001:db8::1"]));
    assert_eq!(addresses(&mut resolver, "alias").await?, list(&["192.0.2.1"]));
    assert_eq!(addresses(&mut resolver, "2001:db8::7").await?, list(&["2001:db8::7"]));
    for name in ["unknown", "first", "scoped", "commented", "nonsense", "", "a\0b"] {
        assert_eq!(addresses(&mut resolver, name).await?, Err(LookupError::NotFound), "{name:?}");
    }
    Ok(())
}

#[tokio::test]
async fn reads_a_hosts_file_again_when_it_has_changed() -> Outcome {
    let file = Scratch::with("192.0.2.1 origin\n")?;
    let mut resolver = file.resolver()?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.1"]));
    // As long as before: only its time tells.
    fs::write(&file.0, "192.0.2.2 origin\n")?;
    let later = fs::metadata(&file.0)?.modified()? + Duration::from_secs(1);
    File::options().write(true).open(&file.0)?.set_modified(later)?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.2"]));

    // Replaced by another, as an editor does.
    let replacement = Scratch::with("192.0.2.3 origin\n")?;
    fs::rename(&replacement.0, &file.0)?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.3"]));
    Ok(())
}

#[tokio::test]
async fn a_hosts_file_met_halfway_leaves_the_last_one_in_place() -> Outcome {
    let file = Scratch::with("192.0.2.1 origin\n192.0.2.2 other\n")?;
    let mut resolver = file.resolver()?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.1"]));
    for halfway in ["", "192.0.2.9 orig", "192.0.2.9 origin\n192.0.2"] {
        fs::write(&file.0, halfway)?;
        assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.1"]), "{halfway:?}");
        assert_eq!(addresses(&mut resolver, "other").await?, list(&["192.0.2.2"]), "{halfway:?}");
        let failed = addresses(&mut resolver, "new").await?;
        assert!(matches!(failed, Err(LookupError::Failed(_))), "it may be in what is to come: {failed:?}");
    }
    // Nobody has written for a while: then it is meant like that.
    let before = fs::metadata(&file.0)?.modified()? - Duration::from_secs(5);
    File::options().write(true).open(&file.0)?.set_modified(before)?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.9"]));
    assert_eq!(addresses(&mut resolver, "other").await?, Err(LookupError::NotFound));

    fs::remove_file(&file.0)?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.9"]));
    let failed = addresses(&mut resolver, "new").await?;
    assert!(matches!(failed, Err(LookupError::Failed(_))), "nobody can tell: {failed:?}");
    Ok(())
}

#[tokio::test]
async fn a_hosts_file_met_halfway_at_first_tells_what_it_has() -> Outcome {
    let file = Scratch::with("192.0.2.1 origin\n192.0.2.2 oth")?;
    let mut resolver = file.resolver()?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.1"]));
    let failed = addresses(&mut resolver, "other").await?;
    assert!(matches!(failed, Err(LookupError::Failed(_))), "not yet known: {failed:?}");
    fs::write(&file.0, "192.0.2.1 origin\n192.0.2.2 other\n")?;
    assert_eq!(addresses(&mut resolver, "other").await?, list(&["192.0.2.2"]));
    Ok(())
}

/// A FIFO would wait for its writer, a device has no end.
#[tokio::test]
async fn what_is_no_file_any_more_leaves_the_last_hosts_file_in_place() -> Outcome {
    let file = Scratch::with("192.0.2.1 origin\n")?;
    let mut resolver = file.resolver()?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.1"]));
    fs::remove_file(&file.0)?;
    assert!(Command::new("mkfifo").arg(&file.0).status()?.success());
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.1"]));
    let failed = addresses(&mut resolver, "other").await?;
    assert!(matches!(failed, Err(LookupError::Failed(_))), "{failed:?}");
    fs::remove_file(&file.0)?;
    std::os::unix::fs::symlink("/dev/zero", &file.0)?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.1"]));
    fs::remove_file(&file.0)?;
    fs::write(&file.0, "192.0.2.3 origin\n")?;
    assert_eq!(addresses(&mut resolver, "origin").await?, list(&["192.0.2.3"]));
    Ok(())
}

#[tokio::test]
async fn a_hosts_file_that_is_not_there_says_nothing_of_names() -> Outcome {
    let mut resolver = Scratch::new().resolver()?;
    let failed = addresses(&mut resolver, "origin").await?;
    assert!(matches!(failed, Err(LookupError::Failed(_))), "{failed:?}");
    Ok(())
}

#[tokio::test]
async fn asks_the_system() -> Outcome {
    let mut resolver = Resolver::new(Source::System, 2, 2)?;
    let localhost = addresses(&mut resolver, "localhost").await??;
    assert!(localhost.iter().all(IpAddr::is_loopback) && !localhost.is_empty(), "{localhost:?}");
    assert_eq!(addresses(&mut resolver, "192.0.2.1").await?, list(&["192.0.2.1"]));
    for name in ["", "a\0b"] {
        assert_eq!(addresses(&mut resolver, name).await?, Err(LookupError::NotFound), "{name:?}");
    }
    // With a name server it is not found, without one nobody can tell.
    assert!(addresses(&mut resolver, "unknown.invalid").await?.is_err());
    Ok(())
}

/// A name server that is silent until it is [released](release): a resolver that takes its time.
fn silent_server() -> io::Result<(UdpSocket, Resolver)> {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    server.set_read_timeout(Some(Duration::from_millis(500)))?;
    let resolver = Resolver::new(Source::Server(server.local_addr()?), 1, 1)?;
    Ok((server, resolver))
}

/// Answers all that was asked that there is no such name.
fn release(server: &UdpSocket) -> io::Result<()> {
    let mut query = [0; 512];
    while let Ok((length, client)) = server.recv_from(&mut query) {
        (query[2], query[3]) = (query[2] | 0x80, 0x83);
        server.send_to(&query[..length], client)?;
    }
    Ok(())
}

#[tokio::test]
async fn refuses_a_look_up_when_all_threads_work_and_the_queue_is_full() -> Outcome {
    let (server, mut resolver) = silent_server()?;
    let accepted = (0..).take_while(|id| resolver.look_up(*id, "origin").is_ok()).count();
    // One in the queue and, if it was quick, one in the thread.
    assert!((1..=2).contains(&accepted), "{accepted} accepted");
    release(&server)?;
    let first = finished(&mut resolver).await?;
    assert_eq!((first.id, first.addresses), (0, Err(LookupError::NotFound)));
    Ok(())
}

#[tokio::test]
async fn dropping_it_does_not_wait_for_a_look_up() -> Outcome {
    let (server, resolver) = silent_server()?;
    resolver.look_up(1, "origin")?;
    drop(resolver);
    // Reached only because dropping did not wait. Let the thread end as well.
    release(&server)?;
    Ok(())
}
