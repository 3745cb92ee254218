"""Irregular French verbs as one compact table.

A line reads: infinitive: six present forms | past participle | future stem | six subjunctive forms.
The last two fields may be left out when they follow from the others.
"""

TABLE = """
être: suis es est sommes êtes sont | été | ser | sois sois soit soyons soyez soient
avoir: ai as a avons avez ont | eu | aur | aie aies ait ayons ayez aient
aller: vais vas va allons allez vont | allé | ir | aille ailles aille allions alliez aillent
faire: fais fais fait faisons faites font | fait | fer | fasse fasses fasse fassions fassiez fassent
pouvoir: peux peux peut pouvons pouvez peuvent | pu | pourr |
    puisse puisses puisse puissions puissiez puissent
vouloir: veux veux veut voulons voulez veulent | voulu | voudr |
    veuille veuilles veuille voulions vouliez veuillent
devoir: dois dois doit devons devez doivent | dû | devr
savoir: sais sais sait savons savez savent | su | saur | sache saches sache sachions sachiez sachent
venir: viens viens vient venons venez viennent | venu | viendr
revenir: reviens reviens revient revenons revenez reviennent | revenu | reviendr
devenir: deviens deviens devient devenons devenez deviennent | devenu | deviendr
se souvenir: souviens souviens souvient souvenons souvenez souviennent | souvenu | souviendr
tenir: tiens tiens tient tenons tenez tiennent | tenu | tiendr
prendre: prends prends prend prenons prenez prennent | pris
apprendre: apprends apprends apprend apprenons apprenez apprennent | appris
comprendre: comprends comprends comprend comprenons comprenez comprennent | compris
mettre: mets mets met mettons mettez mettent | mis
promettre: promets promets promet promettons promettez promettent | promis
boire: bois bois boit buvons buvez boivent | bu
lire: lis lis lit lisons lisez lisent | lu
écrire: écris écris écrit écrivons écrivez écrivent | écrit
dire: dis dis dit disons dites disent | dit
voir: vois vois voit voyons voyez voient | vu | verr
croire: crois crois croit croyons croyez croient | cru
recevoir: reçois reçois reçoit recevons recevez reçoivent | reçu | recevr
connaître: connais connais connaît connaissons connaissez connaissent | connu
reconnaître: reconnais reconnais reconnaît reconnaissons reconnaissez reconnaissent | reconnu
conduire: conduis conduis conduit conduisons conduisez conduisent | conduit
traduire: traduis traduis traduit traduisons traduisez traduisent | traduit
construire: construis construis construit construisons construisez construisent | construit
rire: ris ris rit rions riez rient | ri
sourire: souris souris sourit sourions souriez sourient | souri
suivre: suis suis suit suivons suivez suivent | suivi
vivre: vis vis vit vivons vivez vivent | vécu
plaire: plais plais plaît plaisons plaisez plaisent | plu
peindre: peins peins peint peignons peignez peignent | peint
éteindre: éteins éteins éteint éteignons éteignez éteignent | éteint
partir: pars pars part partons partez partent | parti
sortir: sors sors sort sortons sortez sortent | sorti
dormir: dors dors dort dormons dormez dorment | dormi
mentir: mens mens ment mentons mentez mentent | menti
servir: sers sers sert servons servez servent | servi
ouvrir: ouvre ouvres ouvre ouvrons ouvrez ouvrent | ouvert
offrir: offre offres offre offrons offrez offrent | offert
courir: cours cours court courons courez courent | couru | courr
mourir: meurs meurs meurt mourons mourez meurent | mort | mourr
naître: nais nais naît naissons naissez naissent | né
envoyer: envoie envoies envoie envoyons envoyez envoient | envoyé | enverr
falloir: - - faut - - - | fallu | faudr | - - faille - - -
pleuvoir: - - pleut - - - | plu | pleuvr | - - pleuve - - -
"""


def _parse():
    verbs = {}
    # An indented line continues the one above it.
    for line in TABLE.strip().replace("\n    ", " ").splitlines():
        name, rest = line.split(": ", 1)
        fields = [field.strip() for field in rest.split("|")]
        fields += [""] * (4 - len(fields))
        key = name.replace("se ", "")
        subjunctive = tuple(fields[3].split()) or None
        verbs[key] = (tuple(fields[0].split()), fields[1], fields[2], subjunctive)
    return verbs


IRREGULAR = _parse()

# Verbs whose compound tenses take être; every reflexive verb does too.
WITH_ETRE = frozenset("aller venir revenir devenir partir sortir entrer rentrer arriver rester tomber monter "
                      "descendre naître mourir retourner".split())
