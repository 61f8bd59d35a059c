//! The functions and macros that rules call.

use super::CelError;
use super::eval::{Evaluator, Locals, Outcome, Val, wrong};
use super::parse::Expr;
use std::borrow::Cow;

pub(super) fn call<'a>(
    evaluator: &Evaluator<'_, 'a>,
    of: Option<&'a Expr>,
    name: &'a str,
    arguments: &'a [Expr],
    locals: Locals<'_, 'a>,
) -> Outcome<'a> {
    if let (None, "has", [Expr::Member(of, field)]) = (of, name, arguments) {
        return Ok(Val::Bool(evaluator.value(of, locals)?.member(field).is_some()));
    }
    if let (Some(of), [Expr::Name(variable), rest @ ..]) = (of, arguments)
        && matches!(
            name,
            "all" | "exists" | "exists_one" | "existsOne" | "filter" | "map"
        )
        && !rest.is_empty()
    {
        return over_items(evaluator, of, name, variable, rest, locals);
    }
    let mut values = Vec::new();
    for expression in of.into_iter().chain(arguments) {
        values.push(evaluator.value(expression, locals)?);
    }
    plain(name, &values)
}

fn over_items<'a>(
    evaluator: &Evaluator<'_, 'a>,
    of: &'a Expr,
    name: &str,
    variable: &'a str,
    body: &'a [Expr],
    locals: Locals<'_, 'a>,
) -> Outcome<'a> {
    let items = evaluator.value(of, locals)?.items()?;
    let mut inner = locals.to_vec();
    inner.push((variable, Val::Null));
    let mut kept = Vec::new();
    let mut trouble: Option<CelError> = None;
    let last = inner.len() - 1;
    for item in items {
        inner[last].1 = item.clone();
        if name == "map" {
            let wanted = body.len() == 1 || evaluator.flag(&body[0], &inner)?;
            if wanted {
                kept.push(evaluator.value(&body[body.len() - 1], &inner)?);
            }
            continue;
        }
        match (evaluator.flag(&body[0], &inner), name) {
            (Ok(false), "all") => return Ok(Val::Bool(false)),
            (Ok(true), "exists") => return Ok(Val::Bool(true)),
            (Ok(true), _) => kept.push(item),
            (Ok(false), _) => {}
            (Err(error), "all" | "exists") => trouble = Some(error),
            (Err(error), _) => return Err(error),
        }
    }
    if let Some(error) = trouble {
        return Err(error);
    }
    Ok(match name {
        "all" => Val::Bool(true),
        "exists" => Val::Bool(false),
        "exists_one" | "existsOne" => Val::Bool(kept.len() == 1),
        _ => Val::List(kept),
    })
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "conversions that rules ask for"
)]
fn plain<'a>(name: &str, values: &[Val<'a>]) -> Outcome<'a> {
    let count = |count: usize| Val::Int(i64::try_from(count).unwrap_or(i64::MAX));
    let owned = |text: String| Val::Str(Cow::Owned(text));
    Ok(match (name, values) {
        ("size", [Val::Str(text)]) => count(text.chars().count()),
        ("size", [other]) => count(other.items()?.len()),
        ("contains", [Val::Str(text), Val::Str(part)]) => Val::Bool(text.contains(&**part)),
        ("startsWith", [Val::Str(text), Val::Str(part)]) => Val::Bool(text.starts_with(&**part)),
        ("endsWith", [Val::Str(text), Val::Str(part)]) => Val::Bool(text.ends_with(&**part)),
        ("matches", [Val::Str(text), Val::Str(pattern)]) => match regex::Regex::new(pattern) {
            Ok(regex) => Val::Bool(regex.is_match(text)),
            Err(error) => return wrong(format!("matches: {error}")),
        },
        ("lowerAscii", [Val::Str(text)]) => owned(text.to_ascii_lowercase()),
        ("upperAscii", [Val::Str(text)]) => owned(text.to_ascii_uppercase()),
        ("trim", [Val::Str(text)]) => owned(text.trim().to_owned()),
        ("replace", [Val::Str(text), Val::Str(old), Val::Str(new)]) => owned(text.replace(&**old, new)),
        ("split", [Val::Str(text), Val::Str(mark)]) => {
            Val::List(text.split(&**mark).map(|part| owned(part.to_owned())).collect())
        }
        ("join", [list, rest @ ..]) => {
            let mark = match rest {
                [Val::Str(mark)] => mark.to_string(),
                _ => String::new(),
            };
            owned(texts(list)?.join(&mark))
        }
        ("indexOf", [Val::Str(text), Val::Str(part)]) => match text.find(&**part) {
            Some(at) => count(text[..at].chars().count()),
            None => Val::Int(-1),
        },
        ("substring", [Val::Str(text), Val::Int(from)]) => owned(text.chars().skip(whole(*from)?).collect()),
        ("substring", [Val::Str(text), Val::Int(from), Val::Int(to)]) => {
            let (from, to) = (whole(*from)?, whole(*to)?);
            owned(text.chars().take(to).skip(from).collect())
        }
        ("isSorted", [list]) => {
            let items = list.items()?;
            Val::Bool(
                items
                    .windows(2)
                    .all(|pair| pair[0].compare(&pair[1]).is_some_and(std::cmp::Ordering::is_le)),
            )
        }
        ("sum", [list]) => {
            let mut sum = 0_i64;
            for item in list.items()? {
                let Val::Int(value) = item else {
                    return wrong("no such overload: sum");
                };
                sum = sum.saturating_add(value);
            }
            Val::Int(sum)
        }
        ("min" | "max", [list]) => {
            let items = list.items()?;
            let mut best: Option<Val<'a>> = None;
            for item in items {
                let better = best.as_ref().is_none_or(|best| {
                    let ordering = item.compare(best);
                    ordering.is_some_and(|ordering| (ordering.is_lt()) == (name == "min") && ordering.is_ne())
                });
                if better {
                    best = Some(item);
                }
            }
            best.map_or_else(|| wrong(format!("{name} called on empty list")), Ok)?
        }
        ("int", [Val::Int(value)]) => Val::Int(*value),
        ("int", [Val::Double(value)]) => Val::Int(*value as i64),
        ("int", [Val::Str(text)]) => match text.parse() {
            Ok(value) => Val::Int(value),
            Err(_) => return wrong(format!("cannot convert {text:?} to int")),
        },
        ("double", [Val::Int(value)]) => Val::Double(*value as f64),
        ("double", [Val::Double(value)]) => Val::Double(*value),
        ("double", [Val::Str(text)]) => match text.parse() {
            Ok(value) => Val::Double(value),
            Err(_) => return wrong(format!("cannot convert {text:?} to double")),
        },
        ("string", [Val::Str(text)]) => Val::Str(text.clone()),
        ("string", [Val::Int(value)]) => owned(value.to_string()),
        ("string", [Val::Double(value)]) => owned(value.to_string()),
        ("string", [Val::Bool(value)]) => owned(value.to_string()),
        ("bool", [Val::Bool(value)]) => Val::Bool(*value),
        ("dyn", [value]) => value.clone(),
        ("type", [value]) => owned(value.type_name().to_owned()),
        _ => {
            let types: Vec<&str> = values.iter().map(Val::type_name).collect();
            return wrong(format!("no such function: {name}({})", types.join(", ")));
        }
    })
}

fn whole(value: i64) -> Result<usize, CelError> {
    usize::try_from(value).or_else(|_| wrong(format!("index out of range: {value}")))
}

fn texts(list: &Val<'_>) -> Result<Vec<String>, CelError> {
    let items = list.items()?;
    items
        .into_iter()
        .map(|item| match item {
            Val::Str(text) => Ok(text.into_owned()),
            other => wrong(format!("no such overload: join of {}", other.type_name())),
        })
        .collect()
}
