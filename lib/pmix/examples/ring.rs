//! Each process puts a greeting, and gets those of its neighbour and of every rank: `px run -n 4 ring`.

use pmix::{Client, Info, Scope, keys};

fn main() -> Result<(), pmix::Error> {
    let client = Client::init()?;
    let me = client.proc().clone();
    let size = client.get_job(keys::JOB_SIZE)?.as_u32().unwrap_or(1);

    client.put(Scope::GLOBAL, "ring.greeting", format!("greetings of {}", me.rank))?;
    client.commit()?;
    client.fence(&[], &[Info::new(keys::COLLECT_DATA, true)])?;

    let neighbour = client.peer((me.rank.0 + 1) % size);
    let greeting = client.get(&neighbour, "ring.greeting", &[])?;
    let mut heard = 0;
    for rank in 0..size {
        client.get(&client.peer(rank), "ring.greeting", &[])?;
        heard += 1;
    }
    println!(
        "{me} of {size}: heard {heard}, my neighbour says \"{}\"",
        greeting.as_str().unwrap_or_default()
    );
    client.finalize(&[Info::new(keys::EMBED_BARRIER, true)])
}
