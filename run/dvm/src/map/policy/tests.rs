use super::*;

fn map(text: &str) -> MapPolicy {
    text.parse().unwrap()
}

fn problem<T: FromStr<Err = PolicyError>>(text: &str) -> String {
    let error = text.parse::<T>().err().unwrap();
    match error.hint.clone() {
        Some(hint) => format!("{error} ({hint})"),
        None => error.to_string(),
    }
}

#[test]
fn directives() {
    let by = |text: &str| map(text).by.unwrap();
    assert_eq!(by("slot"), MapBy::Slot);
    assert_eq!(by("NODE"), MapBy::Node);
    assert_eq!(by("l3"), MapBy::Object(Level::L3));
    assert_eq!(by("socket"), MapBy::Object(Level::Package));
    assert_eq!(by("hwt"), MapBy::Object(Level::Pu));
    assert_eq!(by("ppr:2:package"), MapBy::PerResource { count: 2, level: Level::Package });
    assert_eq!(by("ppr:1:node:pe=4"), MapBy::PerResource { count: 1, level: Level::Machine });
    assert_eq!(by("seq:file=/tmp/s"), MapBy::Sequence);
    assert_eq!(by("rankfile:FILE=a=b"), MapBy::Rankfile);
}

#[test]
fn qualifiers() {
    let policy = map("package:PE=2:span:oversub:hwtcpus:nolocal");
    assert_eq!((policy.pe, policy.span, policy.oversubscribe), (Some(2), true, Some(true)));
    assert_eq!((policy.hwthreads, policy.nolocal), (Some(true), true));
    let only = map(":nooversubscribe");
    assert_eq!((only.by, only.oversubscribe), (None, Some(false)));
    assert_eq!(map("core:corecpus").hwthreads, Some(false));
    assert_eq!(map("rankfile:file=a=b").file.as_deref(), Some("a=b"));
}

#[test]
fn problems_name_what_was_meant() {
    let expected = "--map-by pakage: \"pakage\" is not one of slot, hwthread, core, l1cache, l2cache, l3cache, numa, \
                    package, socket, node, seq, ppr, rankfile (did you mean \"package\"?)";
    assert_eq!(problem::<MapPolicy>("pakage"), expected);
    assert_eq!(problem::<MapPolicy>("p"), "--map-by p: \"p\" could be package or ppr");
    assert_eq!(problem::<MapPolicy>("slot:pe"), "--map-by slot:pe: pe needs a number above 0, as in pe=2");
    assert_eq!(
        problem::<MapPolicy>("slot:pe=0"),
        "--map-by slot:pe=0: pe needs a number above 0, as in pe=2"
    );
    assert_eq!(problem::<MapPolicy>("ppr:2"), "--map-by ppr:2: expected ppr:N:OBJECT, as in ppr:2:package");
    assert_eq!(
        problem::<MapPolicy>("ppr:x:node"),
        "--map-by ppr:x:node: expected ppr:N:OBJECT, as in ppr:2:package"
    );
    assert!(problem::<MapPolicy>("ppr:2:pkg").contains("\"pkg\" is not one of node, package"));
    assert!(problem::<MapPolicy>("core:oversub:nooversub").ends_with("contradicts an earlier qualifier"));
    assert!(problem::<MapPolicy>("core:spann").ends_with("(did you mean \"span\"?)"));
    assert!(problem::<MapPolicy>("slot:span").contains("span belongs to a hardware object"));
    assert!(problem::<MapPolicy>("core:file=x").contains("file= belongs to seq or rankfile"));
    assert!(problem::<MapPolicy>("rankfile").contains("rankfile needs a file (--map-by rankfile:file=PATH)"));
    assert!(problem::<MapPolicy>("core:span=1").contains("span takes no value"));
    assert!(problem::<MapPolicy>("").contains("expected one of slot"));
    assert!(problem::<MapPolicy>("seq:file=").contains("file= needs a path"));
}

#[test]
fn ranking() {
    assert_eq!("fill".parse(), Ok(RankBy::Fill));
    assert_eq!("SP".parse(), Ok(RankBy::Span));
    assert_eq!("socket".parse(), Ok(RankBy::Object(Level::Package)));
    assert!(problem::<RankBy>("slots").ends_with("(did you mean \"slot\"?)"));
    assert!(problem::<RankBy>("file").contains("is not one of"));
}

#[test]
fn binding() {
    let bind = |text: &str| text.parse::<BindPolicy>().unwrap();
    assert_eq!(bind("none").to, Some(BindTo::None));
    assert_eq!(bind("core:overload").to, Some(BindTo::Object(Level::Core)));
    assert!(bind("core:overload-allowed").overload);
    assert!(!bind("core:overload:no-overload").overload);
    assert!(bind("numa:if-supported").if_supported);
    assert_eq!(bind(":overload-allowed").to, None);
    assert!(problem::<BindPolicy>("cores").ends_with("(did you mean \"core\"?)"));
    assert!(
        problem::<BindPolicy>("core:overlode").ends_with("no-overload, if-supported"),
        "{}",
        problem::<BindPolicy>("core:overlode")
    );
}

#[test]
fn policies_are_shown_as_they_were_read() {
    for text in ["slot", "node", "package", "l2cache", "hwthread", "ppr:3:numa", "seq"] {
        assert_eq!(map(text).by.unwrap().to_string(), text);
    }
    for text in ["slot", "node", "fill", "span", "core"] {
        assert_eq!(text.parse::<RankBy>().unwrap().to_string(), text);
    }
    for text in ["none", "core", "numa"] {
        assert_eq!(text.parse::<BindPolicy>().unwrap().to.unwrap().to_string(), text);
    }
}
