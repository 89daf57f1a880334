//! How long ago something was, in two or three figures as kubectl prints it: `5s`, `3m12s`, `2d4h`, `3y20d`. Reads
//! no clock.

use jiff::Timestamp;

/// The time between two moments in kubectl's words. Clocks that differ by less than two seconds do not matter.
fn human_duration(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, 'd', hours % 24, 'h'),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => pair(years, 'y', days % 365, 'd'),
        _ => format!("{years}y"),
    }
}

fn pair(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        small => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

/// How long ago the time in `text` was; `<invalid>` for what is no time.
pub(super) fn since(text: &str, now: Timestamp) -> String {
    text.parse()
        .map_or_else(|_| "<invalid>".to_owned(), |time| human_duration(time, now))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn two_or_three_figures_as_kubectl_prints_them() {
        let start: Timestamp = "2024-01-01T00:00:00Z".parse().unwrap();
        let day = 86_400;
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (192, "3m12s"),
            (10 * 60 + 5, "10m"),
            (179 * 60, "179m"),
            (180 * 60, "3h"),
            (3 * 3600 + 25 * 60, "3h25m"),
            (8 * 3600 + 60, "8h"),
            (47 * 3600, "47h"),
            (2 * day, "2d"),
            (2 * day + 4 * 3600, "2d4h"),
            (8 * day + 3600, "8d"),
            (729 * day, "729d"),
            (2 * 365 * day, "2y"),
            (3 * 365 * day + 20 * day, "3y20d"),
            (9 * 365 * day, "9y"),
        ] {
            let end = start.checked_add(SignedDuration::from_secs(seconds)).unwrap();
            assert_eq!(human_duration(start, end), text, "{seconds} seconds");
        }
    }
}
