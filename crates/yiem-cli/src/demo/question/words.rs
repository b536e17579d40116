//! The words that the demonstration knows.
//!
//! Knows: word lists, in small letters. Does not know: sentences.

/// Words that ask for the weather.
#[rustfmt::skip]
pub(super) const WEATHER: &[&str] = &[
    "weather", "forecast", "temperature", "temperatures", "rain", "raining", "rainy", "sunny",
    "sun", "snow", "snowing", "cloudy", "windy", "humid", "humidity", "hot", "cold", "warm",
    "umbrella", "wetter", "天気",
];

/// Words that ask for the time.
#[rustfmt::skip]
pub(super) const TIME: &[&str] = &[
    "time", "times", "o'clock", "clock", "hour", "timezone", "timezones", "時間", "何時",
];

/// Words behind which a place may stand.
#[rustfmt::skip]
pub(super) const BEFORE_A_PLACE: &[&str] = &[
    "in", "at", "for", "near", "around", "about", "of", "over", "from", "to", "like",
];

/// What stands between places of a list.
#[rustfmt::skip]
pub(super) const BETWEEN_PLACES: &[&str] = &[
    "and", "or", "vs", "versus", "&", ",", "、", "，", "than", "then", "also", "plus",
];

/// Words that are in no place's name, so that a name ends before them.
#[rustfmt::skip]
pub(super) const NO_NAME: &[&str] = &[
    "a", "an", "the", "this", "that", "these", "those", "it", "its", "there", "here", "where",
    "when", "what", "whats", "which", "who", "why", "how", "is", "are", "was", "were", "will",
    "be", "been", "do", "does", "did", "can", "could", "would", "should", "shall", "may", "might",
    "must", "i", "me", "my", "you", "your", "we", "us", "our", "they", "them", "he", "she", "his",
    "her", "tell", "give", "show", "say", "get", "check", "find", "look", "know", "want", "need",
    "compare", "please", "now", "right", "today", "tomorrow", "tonight", "yesterday", "currently",
    "current", "moment", "morning", "afternoon", "evening", "night", "week", "weekend", "next",
    "later", "local", "and", "or", "but", "if", "as", "so", "with", "without", "by", "on", "in",
    "at", "for", "near", "around", "about", "of", "over", "from", "to", "like", "not", "no",
    "yes", "ok", "okay", "thanks", "thank", "hello", "hi", "hey", "same", "both", "each", "also",
    "too", "then", "than", "versus", "vs", "compared", "degrees", "units", "using", "use", "call",
    "report", "conditions", "update", "going", "outside", "minutes", "seconds", "days", "day",
    "place", "city", "cities", "country", "zone", "different", "between", "difference", "go",
    "let", "make", "write", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday",
    "sunday", "joke", "story", "poem", "general", "long", "have", "has", "had", "first", "much",
    "many", "some", "any", "all", "think", "good", "great", "nice", "really",
];

/// Units of temperature.
#[rustfmt::skip]
pub(super) const UNITS: &[&str] = &["celsius", "fahrenheit", "kelvin", "centigrade"];

/// Words of names whose full stop belongs to them.
#[rustfmt::skip]
pub(super) const SHORTENED: &[&str] = &["st", "mt", "ft", "pt"];

/// Names that follow a city to tell where it lies.
#[rustfmt::skip]
pub(super) const REGIONS: &[&str] = &[
    "argentina", "arizona", "australia", "austria", "belgium", "brazil", "california", "chile",
    "china", "colombia", "colorado", "czechia", "denmark", "egypt", "england", "finland",
    "florida", "france", "germany", "greece", "hungary", "india", "indonesia", "ireland",
    "israel", "italy", "japan", "kenya", "korea", "malaysia", "mexico", "morocco", "netherlands",
    "nigeria", "norway", "ontario", "oregon", "pakistan", "peru", "philippines", "poland",
    "portugal", "romania", "russia", "scotland", "spain", "sweden", "switzerland", "texas",
    "thailand", "turkey", "uk", "ukraine", "utah", "vietnam", "wales",
];

/// Words that speak of what was spoken of before.
#[rustfmt::skip]
pub(super) const REFERRING: &[&str] = &["there", "again"];
