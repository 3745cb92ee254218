"""Closed classes and names: subjects, numbers, dates, adverbs, places of the world, languages.

Numbers are spelled out by rule, since soixante-dix and quatre-vingts are part of what is to be learnt.
"""

FEMALE = ("Marie", "Sophie", "Claire", "Anne", "Julie", "Emma", "Alice", "Léa")
MALE = ("Paul", "Pierre", "Luc", "Thomas", "Antoine", "Nicolas", "Louis", "Marc")

# (french, english, gender, number, person)
PRONOUNS = (("je", "I", "m", "s", 0), ("je", "I", "f", "s", 0), ("tu", "you", "m", "s", 1),
            ("tu", "you", "f", "s", 1),
            ("il", "he", "m", "s", 2), ("elle", "she", "f", "s", 2), ("nous", "we", "m", "p", 3),
            ("vous", "you", "m", "p", 4), ("ils", "they", "m", "p", 5), ("elles", "they", "f", "p", 5))

STRESSED = ("moi", "toi", "lui", "nous", "vous", "eux")
EN_OBJECT = ("me", "you", "him", "us", "you", "them")
EN_POSSESSIVE = ("my", "your", "his", "our", "your", "their")
EN_OWN = ("mine", "yours", "his", "ours", "yours", "theirs")
EN_SELF = ("myself", "yourself", "himself", "ourselves", "yourselves", "themselves")

DAYS = (("lundi", "Monday"), ("mardi", "Tuesday"), ("mercredi", "Wednesday"), ("jeudi", "Thursday"),
        ("vendredi", "Friday"), ("samedi", "Saturday"), ("dimanche", "Sunday"))
MONTHS = (("janvier", "January"), ("février", "February"), ("mars", "March"), ("avril", "April"),
          ("mai", "May"),
          ("juin", "June"), ("juillet", "July"), ("août", "August"), ("septembre", "September"),
          ("octobre", "October"), ("novembre", "November"), ("décembre", "December"))

PAST_TIMES = (("hier", "yesterday"), ("hier soir", "last night"), ("la semaine dernière", "last week"),
              ("le mois dernier", "last month"), ("l'année dernière", "last year"),
              ("il y a deux jours", "two days ago"), ("il y a trois semaines", "three weeks ago"),
              ("samedi dernier", "last Saturday"), ("lundi dernier", "last Monday"),
              ("avant-hier", "the day before yesterday"))
FUTURE_TIMES = (("demain", "tomorrow"), ("la semaine prochaine", "next week"),
                ("le mois prochain", "next month"),
                ("dans deux jours", "in two days"), ("vendredi prochain", "next Friday"), ("bientôt", "soon"),
                ("dimanche prochain", "next Sunday"), ("après-demain", "the day after tomorrow"),
                ("demain matin", "tomorrow morning"), ("demain soir", "tomorrow evening"),
                ("dans une heure", "in an hour"))
NOW_TIMES = (("maintenant", "now"), ("en ce moment", "at the moment"))
HABIT_TIMES = (("tous les jours", "every day"), ("tous les matins", "every morning"),
               ("tous les soirs", "every evening"),
               ("chaque semaine", "every week"), ("le dimanche", "on Sundays"), ("le lundi", "on Mondays"),
               ("le samedi", "on Saturdays"), ("chaque été", "every summer"))
FREQUENCY = (("souvent", "often"), ("toujours", "always"), ("rarement", "rarely"), ("parfois", "sometimes"))
MANNERS = (("vite", "fast"), ("lentement", "slowly"), ("bien", "well"), ("mal", "badly"),
           ("beaucoup", "a lot"),
           ("trop", "too much"), ("ensemble", "together"), ("très bien", "very well"))
OTHER_WORDS = ("ici là loin près dehors peu assez plus moins aussi déjà encore jamais rien personne pourquoi "
               "quand comment combien où qui que quel parce si mais et donc avec sans pour chez dans sur "
               "sous "
               "devant derrière depuis pendant avant après y en aujourd'hui tard tôt très oui non "
               "chaque tout plusieurs autre mien tien nôtre vôtre leur").split()

COUNTRIES = (("France", "f", "France"), ("Espagne", "f", "Spain"), ("Italie", "f", "Italy"),
             ("Allemagne", "f", "Germany"), ("Belgique", "f", "Belgium"), ("Suisse", "f", "Switzerland"),
             ("Angleterre", "f", "England"), ("Canada", "m", "Canada"), ("Japon", "m", "Japan"),
             ("Portugal", "m", "Portugal"), ("Mexique", "m", "Mexico"),
             ("États-Unis", "p", "the United States"))
CITIES = (("Paris", "Paris"), ("Londres", "London"), ("Lyon", "Lyon"), ("Rome", "Rome"), ("Madrid", "Madrid"),
          ("Berlin", "Berlin"), ("Genève", "Geneva"), ("Bruxelles", "Brussels"), ("Nice", "Nice"),
          ("Marseille", "Marseille"))
LANGUAGES = (("français", "French"), ("anglais", "English"), ("espagnol", "Spanish"), ("allemand", "German"),
             ("italien", "Italian"), ("chinois", "Chinese"), ("japonais", "Japanese"), ("russe", "Russian"))
SPORTS = (("le football", "soccer"), ("le tennis", "tennis"), ("les cartes", "cards"),
          ("les échecs", "chess"),
          ("le basket", "basketball"), ("le rugby", "rugby"))
INSTRUMENTS = (("le piano", "the piano"), ("la guitare", "the guitar"), ("le violon", "the violin"),
               ("la flûte", "the flute"), ("la batterie", "the drums"))

_UNITS = ("zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize "
          "dix-sept dix-huit dix-neuf").split()
_TENS = {2: "vingt", 3: "trente", 4: "quarante", 5: "cinquante", 6: "soixante"}
_EN_UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
             "sixteen seventeen eighteen nineteen").split()
_EN_TENS = " - twenty thirty forty fifty sixty seventy eighty ninety".split(" ")


def french_number(n, gender="m"):
    """0 to 999, traditional spelling; « un » agrees in gender."""
    if n >= 100:
        hundreds, rest = divmod(n, 100)
        word = "cent" if hundreds == 1 else _UNITS[hundreds] + (" cent" if rest else " cents")
        return word + (" " + french_number(rest, gender) if rest else "")
    if n < 20:
        return "une" if n == 1 and gender == "f" else _UNITS[n]
    if n >= 80:
        rest = n - 80
        return "quatre-vingts" if rest == 0 else "quatre-vingt-" + french_number(rest, gender)
    ten, unit = divmod(n, 10)
    if ten == 7:
        ten, unit = 6, unit + 10
    if unit == 0:
        return _TENS[ten]
    link = " et " if unit in (1, 11) else "-"
    return _TENS[ten] + link + french_number(unit, gender)


def english_number(n):
    if n >= 100:
        hundreds, rest = divmod(n, 100)
        word = _EN_UNITS[hundreds] + " hundred"
        return word + (" and " + english_number(rest) if rest else "")
    if n < 20:
        return _EN_UNITS[n]
    ten, unit = divmod(n, 10)
    return _EN_TENS[ten] + ("-" + _EN_UNITS[unit] if unit else "")


def time_of_day(hour, minute=0):
    """Clock time on the twelve-hour dial; twelve is noon."""
    def name(h):
        if h == 12:
            return "midi", "noon"
        h = h % 12
        return french_number(h, "f") + (" heure" if h == 1 else " heures"), english_number(h)

    hour_fr, hour_en = name(hour)
    next_fr, next_en = name(hour + 1)
    if minute == 0:
        return hour_fr, hour_en if hour == 12 else hour_en + " o'clock"
    # English counts minutes from twelve, not from noon.
    hour_en, next_en = hour_en.replace("noon", "twelve"), next_en.replace("noon", "twelve")
    if minute == 15:
        return hour_fr + " et quart", "a quarter past " + hour_en
    if minute == 30:
        return hour_fr + (" et demi" if hour == 12 else " et demie"), "half past " + hour_en
    if minute == 45:
        return next_fr + " moins le quart", "a quarter to " + next_en
    if minute < 30:
        return hour_fr + " " + french_number(minute), english_number(minute) + " past " + hour_en
    return next_fr + " moins " + french_number(60 - minute), english_number(60 - minute) + " to " + next_en


def lemmas():
    """Headwords of this module, for the count of the lexicon."""
    words = set(OTHER_WORDS) | {p[0] for p in PRONOUNS} | {d[0] for d in DAYS} | {m[0] for m in MONTHS}
    words |= {f[0] for f in FREQUENCY} | {m[0] for m in MANNERS
                                          if " " not in m[0]} | {n[0] for n in COUNTRIES}
    words |= {language[0] for language in LANGUAGES} | {s[0].split()[1] for s in SPORTS + INSTRUMENTS}
    words |= set(_UNITS[1:]) | set(_TENS.values()) | {"hier", "demain", "maintenant", "bientôt", "cent"}
    return words
