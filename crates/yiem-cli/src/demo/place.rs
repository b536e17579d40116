//! Cities and the timezones that they keep.
//!
//! Knows: the cities that give IANA timezones their names, and some hundred more.
//! Does not know: what is asked about them, nor what time it is.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Cities, countries and other names that no timezone is named after: timezone, then names.
/// A name with `=` before it is how the places of its line are called, which are nicknames.
const MORE: &[(&str, &str)] = &[
    ("Africa/Abidjan", "yamoussoukro|ivory coast"),
    ("Africa/Addis_Ababa", "ethiopia"),
    ("Africa/Algiers", "algeria|oran"),
    ("Africa/Cairo", "egypt|alexandria|giza"),
    (
        "Africa/Casablanca",
        "morocco|rabat|marrakesh|marrakech|fes|tangier",
    ),
    ("Africa/Dar_es_Salaam", "tanzania|dodoma|zanzibar"),
    (
        "Africa/Johannesburg",
        "south africa|cape town|durban|pretoria",
    ),
    ("Africa/Kampala", "uganda"),
    ("Africa/Kigali", "rwanda"),
    ("Africa/Lagos", "nigeria|abuja|kano"),
    ("Africa/Nairobi", "kenya|mombasa"),
    ("Africa/Accra", "ghana|kumasi"),
    ("Africa/Dakar", "senegal"),
    ("Africa/Tunis", "tunisia"),
    ("America/Argentina/Buenos_Aires", "argentina|rosario"),
    ("America/Bogota", "colombia|medellin|cali|cartagena"),
    ("America/Caracas", "venezuela"),
    (
        "America/Chicago",
        "dallas|houston|austin|san antonio|minneapolis|milwaukee|new orleans|memphis|nashville|kansas city|st louis|saint louis|st. louis|oklahoma city|omaha|texas",
    ),
    (
        "America/Denver",
        "salt lake city|albuquerque|colorado springs|santa fe|boulder|colorado|utah",
    ),
    ("America/Edmonton", "calgary|banff|alberta"),
    ("America/Havana", "cuba"),
    ("America/Lima", "peru|cusco|arequipa"),
    ("America/Los_Angeles", "=Los Angeles|la"),
    (
        "America/Los_Angeles",
        "san francisco|san diego|seattle|portland|las vegas|sacramento|san jose|oakland|palo alto|mountain view|silicon valley|hollywood|california|oregon",
    ),
    ("America/Mexico_City", "mexico|guadalajara|puebla"),
    ("America/Montevideo", "uruguay"),
    (
        "America/New_York",
        "=New York|nyc|new york city|manhattan|brooklyn",
    ),
    (
        "America/New_York",
        "boston|washington|washington dc|washington d.c|philadelphia|miami|atlanta|baltimore|pittsburgh|cleveland|orlando|tampa|charlotte|cincinnati|columbus|buffalo|raleigh|richmond|cambridge ma|florida",
    ),
    ("America/Phoenix", "tucson|arizona"),
    ("America/Santiago", "chile|valparaiso"),
    (
        "America/Sao_Paulo",
        "brazil|rio de janeiro|rio|brasilia|salvador|belo horizonte|porto alegre|curitiba",
    ),
    (
        "America/Toronto",
        "ottawa|montreal|quebec|quebec city|hamilton|ontario",
    ),
    ("America/Vancouver", "whistler|british columbia"),
    ("America/Winnipeg", "manitoba"),
    ("America/Guayaquil", "ecuador|quito"),
    ("America/Panama", "panama city"),
    ("America/Costa_Rica", "san jose costa rica"),
    ("America/Halifax", "nova scotia"),
    ("Asia/Almaty", "kazakhstan|astana"),
    ("Asia/Baghdad", "iraq|basra"),
    ("Asia/Baku", "azerbaijan"),
    ("Asia/Bangkok", "thailand|chiang mai|phuket|pattaya"),
    ("Asia/Beirut", "lebanon"),
    ("Asia/Colombo", "sri lanka|kandy"),
    ("Asia/Damascus", "syria"),
    ("Asia/Dhaka", "bangladesh|chittagong"),
    (
        "Asia/Dubai",
        "abu dhabi|sharjah|uae|emirates|united arab emirates",
    ),
    ("Asia/Ho_Chi_Minh", "vietnam|hanoi|saigon|da nang"),
    ("Asia/Hong_Kong", "kowloon"),
    ("Asia/Jakarta", "indonesia|bandung|surabaya|yogyakarta"),
    ("Asia/Makassar", "bali|denpasar"),
    ("Asia/Jerusalem", "israel|tel aviv|haifa"),
    ("Asia/Kabul", "afghanistan"),
    ("Asia/Karachi", "pakistan|lahore|islamabad"),
    ("Asia/Kathmandu", "nepal"),
    (
        "Asia/Kolkata",
        "india|mumbai|bombay|delhi|new delhi|bangalore|bengaluru|chennai|hyderabad|pune|ahmedabad|jaipur|goa|calcutta",
    ),
    ("Asia/Kuala_Lumpur", "malaysia|penang|johor bahru"),
    ("Asia/Manila", "philippines|cebu|quezon city"),
    ("Asia/Pyongyang", "north korea"),
    ("Asia/Qatar", "doha"),
    ("Asia/Riyadh", "saudi arabia|jeddah|mecca|medina"),
    ("Asia/Seoul", "korea|south korea|busan|incheon|daegu"),
    (
        "Asia/Shanghai",
        "china|beijing|peking|shenzhen|guangzhou|chengdu|wuhan|hangzhou|nanjing|xian|xi'an|tianjin|suzhou",
    ),
    ("Asia/Singapore", "sentosa"),
    ("Asia/Taipei", "taiwan|kaohsiung|taichung"),
    ("Asia/Tashkent", "uzbekistan|samarkand"),
    ("Asia/Tbilisi", "georgia"),
    ("Asia/Tehran", "iran|isfahan|shiraz"),
    (
        "Asia/Tokyo",
        "japan|osaka|kyoto|yokohama|nagoya|sapporo|kobe|fukuoka|hiroshima|nara|sendai|naha|okinawa|東京|大阪|京都",
    ),
    ("Asia/Yangon", "myanmar|mandalay"),
    ("Asia/Yerevan", "armenia"),
    ("Atlantic/Reykjavik", "iceland"),
    ("Atlantic/Canary", "las palmas|tenerife|canary islands"),
    ("Australia/Adelaide", "south australia"),
    ("Australia/Brisbane", "gold coast|cairns|queensland"),
    ("Australia/Melbourne", "geelong"),
    ("Australia/Perth", "fremantle"),
    ("Australia/Sydney", "canberra|newcastle nsw|australia"),
    (
        "Europe/Amsterdam",
        "netherlands|the netherlands|holland|rotterdam|the hague|utrecht|eindhoven",
    ),
    ("Europe/Athens", "greece|thessaloniki|crete"),
    ("Europe/Belgrade", "serbia|novi sad"),
    (
        "Europe/Berlin",
        "germany|munich|münchen|hamburg|frankfurt|cologne|köln|stuttgart|düsseldorf|dusseldorf|leipzig|dresden|hanover|hannover|nuremberg|bremen|freiburg|heidelberg|bonn|essen|dortmund",
    ),
    ("Europe/Bratislava", "slovakia"),
    ("Europe/Brussels", "belgium|antwerp|ghent|bruges"),
    ("Europe/Bucharest", "romania|cluj"),
    ("Europe/Budapest", "hungary"),
    ("Europe/Copenhagen", "denmark|aarhus"),
    ("Europe/Dublin", "ireland|cork|galway|limerick"),
    ("Europe/Helsinki", "finland|tampere|turku|espoo"),
    ("Europe/Istanbul", "turkey|ankara|izmir|antalya"),
    ("Europe/Kyiv", "ukraine|lviv|odesa|odessa|kharkiv"),
    ("Europe/Lisbon", "portugal|porto|faro"),
    ("Europe/Ljubljana", "slovenia"),
    (
        "Europe/London",
        "uk|united kingdom|england|scotland|wales|great britain|britain|manchester|edinburgh|glasgow|birmingham|liverpool|leeds|bristol|oxford|cambridge|cardiff|belfast|brighton|bath|york|aberdeen|hull|reading",
    ),
    ("Europe/Luxembourg", "luxembourg city"),
    (
        "Europe/Madrid",
        "spain|barcelona|valencia|seville|bilbao|malaga|granada|zaragoza|palma|ibiza",
    ),
    ("Europe/Minsk", "belarus"),
    (
        "Europe/Moscow",
        "russia|saint petersburg|st petersburg|st. petersburg|sochi",
    ),
    (
        "Europe/Oslo",
        "norway|bergen|trondheim|stavanger|tromso|tromsø",
    ),
    (
        "Europe/Paris",
        "france|lyon|marseille|nice|toulouse|bordeaux|lille|strasbourg|nantes|grenoble|cannes",
    ),
    ("Europe/Prague", "czech republic|czechia|brno"),
    ("Europe/Riga", "latvia"),
    (
        "Europe/Rome",
        "italy|milan|milano|naples|turin|florence|venice|bologna|palermo|genoa|verona|pisa|sicily",
    ),
    ("Europe/Sofia", "bulgaria|varna"),
    ("Europe/Stockholm", "sweden|gothenburg|malmo|malmö|uppsala"),
    ("Europe/Tallinn", "estonia|tartu"),
    ("Europe/Vienna", "austria|salzburg|graz|innsbruck|linz"),
    ("Europe/Vilnius", "lithuania|kaunas"),
    (
        "Europe/Warsaw",
        "poland|krakow|kraków|cracow|gdansk|wroclaw|poznan|lodz",
    ),
    ("Europe/Zagreb", "croatia|split|dubrovnik"),
    (
        "Europe/Zurich",
        "switzerland|zürich|geneva|basel|bern|lausanne|lucerne",
    ),
    (
        "Pacific/Auckland",
        "new zealand|wellington|christchurch|queenstown|dunedin",
    ),
    ("Pacific/Fiji", "suva"),
    ("Pacific/Honolulu", "hawaii|maui|waikiki"),
];

/// Abbreviations of timezones, as people write them.
const ABBREVIATIONS: &[(&str, &str)] = &[
    ("utc", "Etc/UTC"),
    ("gmt", "Etc/GMT"),
    ("jst", "Asia/Tokyo"),
    ("kst", "Asia/Seoul"),
    ("hkt", "Asia/Hong_Kong"),
    ("sgt", "Asia/Singapore"),
    ("ict", "Asia/Bangkok"),
    ("msk", "Europe/Moscow"),
    ("cet", "Europe/Berlin"),
    ("cest", "Europe/Berlin"),
    ("eet", "Europe/Athens"),
    ("est", "America/New_York"),
    ("edt", "America/New_York"),
    ("cst", "America/Chicago"),
    ("cdt", "America/Chicago"),
    ("mst", "America/Denver"),
    ("mdt", "America/Denver"),
    ("pst", "America/Los_Angeles"),
    ("pdt", "America/Los_Angeles"),
    ("aest", "Australia/Sydney"),
    ("aedt", "Australia/Sydney"),
    ("nzst", "Pacific/Auckland"),
    ("nzdt", "Pacific/Auckland"),
];

/// Names that are words as well: a place only where the sentence says so.
const AMBIGUOUS: &[&str] = &[
    "bath",
    "cali",
    "center",
    "cork",
    "eastern",
    "central",
    "mountain",
    "pacific",
    "essen",
    "general",
    "hull",
    "la",
    "linz",
    "male",
    "nice",
    "reading",
    "split",
    "rio",
    "troll",
    "currie",
    "davis",
    "casey",
    "easter",
    "midway",
    "wake",
    "chatham",
    "faro",
    "nome",
    "oral",
    "jan mayen",
    "louisville",
    "goa",
    "pisa",
    "nara",
    "bern",
    "fes",
    "york",
    "kano",
    "graz",
];

/// A place that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its name, where it is known by another one than was said.
    pub(crate) name: Option<&'static str>,
    /// The IANA name of its timezone.
    pub(crate) zone: &'static str,
}

static PLACES: LazyLock<HashMap<String, Place>> = LazyLock::new(|| {
    let mut places = HashMap::new();
    for zone in zones() {
        let Some((region, city)) = zone.rsplit_once('/') else {
            continue;
        };
        if !matches!(
            region,
            "Etc" | "SystemV" | "US" | "Canada" | "Brazil" | "Mexico" | "Chile"
        ) {
            places.insert(fold(&city.replace('_', " ")), Place { name: None, zone });
        }
    }
    for (zone, names) in MORE {
        let mut shown = None;
        for name in names.split('|') {
            match name.strip_prefix('=') {
                Some(name) => shown = Some(name),
                None => {
                    places.insert(fold(name), Place { name: shown, zone });
                }
            }
        }
    }
    places
});

/// All names of timezones, kept for as long as the program runs: there is one list of them.
fn zones() -> &'static [String] {
    static ZONES: LazyLock<Vec<String>> = LazyLock::new(|| {
        let mut zones: Vec<String> = TimeZoneDatabase::bundled()
            .available()
            .map(|name| name.as_str().to_owned())
            .collect();
        zones.sort();
        zones
    });
    &ZONES
}

/// The place of that name, in any spelling of capitals and accents; what stands after a comma
/// (`Paris, France`) is not looked at.
pub(crate) fn find(name: &str) -> Option<Place> {
    let name = fold(name);
    PLACES.get(&name).copied().or_else(|| {
        let (city, _) = name.split_once(',')?;
        PLACES.get(city.trim()).copied()
    })
}

/// Whether a name is a word as well, so that it alone does not make a place.
pub(crate) fn is_ambiguous(name: &str) -> bool {
    AMBIGUOUS.contains(&fold(name).as_str())
}

/// The timezone of an abbreviation, or of UTC with hours (`UTC+2`).
pub(crate) fn abbreviation(word: &str) -> Option<String> {
    let word = word.to_lowercase();
    if let Some((_, zone)) = ABBREVIATIONS.iter().find(|(name, _)| *name == word) {
        return Some((*zone).to_owned());
    }
    let hours = word
        .strip_prefix("utc")
        .or_else(|| word.strip_prefix("gmt"))?;
    let (sign, hours) = match hours.split_at_checked(1)? {
        // IANA counts hours west of Greenwich.
        ("+", hours) => ('-', hours),
        ("-", hours) => ('+', hours),
        _ => return None,
    };
    let hours: u8 = hours.parse().ok()?;
    (1..=12)
        .contains(&hours)
        .then(|| format!("Etc/GMT{sign}{hours}"))
}

/// The timezone of an IANA name, in any spelling of capitals.
pub(crate) fn timezone(name: &str) -> Option<TimeZone> {
    TimeZoneDatabase::bundled().get(name).ok()
}

/// A name for looking up: small letters, the accents of Latin letters dropped.
fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for c in name.trim().chars().flat_map(char::to_lowercase) {
        match c {
            'á' | 'à' | 'â' | 'ã' | 'ä' | 'å' | 'ā' => folded.push('a'),
            'ç' | 'ć' | 'č' => folded.push('c'),
            'é' | 'è' | 'ê' | 'ë' | 'ē' | 'ė' | 'ę' => folded.push('e'),
            'í' | 'ì' | 'î' | 'ï' | 'ī' | 'ı' => folded.push('i'),
            'ł' => folded.push('l'),
            'ñ' | 'ń' => folded.push('n'),
            'ó' | 'ò' | 'ô' | 'õ' | 'ö' | 'ø' | 'ō' => folded.push('o'),
            'ś' | 'š' | 'ş' => folded.push('s'),
            'ú' | 'ù' | 'û' | 'ü' | 'ū' => folded.push('u'),
            'ý' | 'ÿ' => folded.push('y'),
            'ź' | 'ż' | 'ž' => folded.push('z'),
            'ğ' => folded.push('g'),
            '’' => folded.push('\''),
            // What a decomposed letter carries behind it.
            '\u{300}'..='\u{36f}' => {}
            c => folded.push(c),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_keeps_a_timezone_that_exists() {
        assert!(PLACES.len() > 700, "{}", PLACES.len());
        for (name, place) in PLACES.iter() {
            assert!(timezone(place.zone).is_some(), "{name}: {}", place.zone);
        }
        for (name, zone) in ABBREVIATIONS {
            assert!(timezone(zone).is_some(), "{name}: {zone}");
        }
    }

    #[test]
    fn places_are_found_in_any_spelling() {
        for (name, zone) in [
            ("Tokyo", "Asia/Tokyo"),
            ("TOKYO", "Asia/Tokyo"),
            ("são paulo", "America/Sao_Paulo"),
            ("Zürich", "Europe/Zurich"),
            ("Paris, France", "Europe/Paris"),
            ("new york", "America/New_York"),
            ("Mumbai", "Asia/Kolkata"),
            ("Port-au-Prince", "America/Port-au-Prince"),
            ("東京", "Asia/Tokyo"),
        ] {
            assert_eq!(find(name).map(|p| p.zone), Some(zone), "{name}");
        }
        assert_eq!(find("NYC").and_then(|p| p.name), Some("New York"));
        assert_eq!(find("Atlantis"), None);
        assert_eq!(find(""), None);
    }

    #[test]
    fn hours_beside_utc_are_read_as_people_mean_them() {
        assert_eq!(abbreviation("UTC").as_deref(), Some("Etc/UTC"));
        assert_eq!(abbreviation("UTC+2").as_deref(), Some("Etc/GMT-2"));
        assert_eq!(abbreviation("GMT-11").as_deref(), Some("Etc/GMT+11"));
        for nothing in ["UTC+0", "UTC+99", "UTC2", "UTC+é", "utc+", "foo"] {
            assert_eq!(abbreviation(nothing), None, "{nothing}");
        }
    }
}
