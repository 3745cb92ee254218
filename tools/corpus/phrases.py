"""Fixed phrases of everyday speech, whole sentence for whole sentence.

A line reads: french|english.
"""

FIXED = """
Bonjour !|Hello!
Bonsoir !|Good evening!
Bonne nuit !|Good night!
Au revoir !|Goodbye!
À bientôt !|See you soon!
À demain !|See you tomorrow!
À ce soir !|See you tonight!
Merci beaucoup !|Thank you very much!
Merci pour tout.|Thank you for everything.
De rien.|You're welcome.
S'il te plaît, aide-moi.|Please help me.
S'il vous plaît, aidez-moi.|Please help me.
Bon appétit !|Enjoy your meal!
Bonne chance !|Good luck!
Bon voyage !|Have a good trip!
Bon anniversaire !|Happy birthday!
Bonne année !|Happy New Year!
À votre santé !|Cheers!
Enchanté.|Nice to meet you.
Comment ça va ?|How's it going?
Ça va bien, merci.|I'm fine, thank you.
Comment allez-vous ?|How are you?
Comment vas-tu ?|How are you?
Comment t'appelles-tu ?|What's your name?
Comment vous appelez-vous ?|What's your name?
Quel âge as-tu ?|How old are you?
Quel âge avez-vous ?|How old are you?
Quel âge a-t-il ?|How old is he?
Quel âge a-t-elle ?|How old is she?
D'où viens-tu ?|Where are you from?
D'où venez-vous ?|Where are you from?
Quelle heure est-il ?|What time is it?
Quel temps fait-il ?|What's the weather like?
Quel jour sommes-nous ?|What day is it today?
Ça ne fait rien.|It doesn't matter.
Ce n'est pas grave.|It's no big deal.
Tant pis !|Too bad!
Tant mieux !|So much the better!
Bien sûr !|Of course!
D'accord.|All right.
Avec plaisir !|With pleasure!
Pas de problème.|No problem.
Je ne sais pas.|I don't know.
Je n'en sais rien.|I have no idea.
Ça dépend.|It depends.
Qu'est-ce que c'est ?|What is it?
Qui est-ce ?|Who is it?
Qu'est-ce qui se passe ?|What's going on?
Qu'est-ce qu'il y a ?|What's the matter?
On y va ?|Shall we go?
On y va !|Let's go!
Allons-y !|Let's go!
Ça suffit !|That's enough!
C'est à toi.|It's your turn.
Fais attention !|Be careful!
Faites attention !|Be careful!
Dépêche-toi !|Hurry up!
Dépêchez-vous !|Hurry up!
Tais-toi !|Be quiet!
Asseyez-vous, s'il vous plaît.|Please sit down.
Combien ça coûte ?|How much does it cost?
L'addition, s'il vous plaît.|The check, please.
Je suis désolé.|I'm sorry.
Je suis désolée.|I'm sorry.
Excusez-moi.|Excuse me.
Tu as de la chance !|You're lucky!
Quelle bonne idée !|What a good idea!
Quelle surprise !|What a surprise!
Ça m'est égal.|I don't care.
Ça vaut la peine.|It's worth it.
J'en ai marre.|I'm fed up.
J'ai hâte de te voir.|I can't wait to see you.
J'ai hâte de vous voir.|I can't wait to see you.
Il n'y a pas de quoi.|Don't mention it.
Soyez les bienvenus !|Welcome!
Bonne journée !|Have a nice day!
Bon courage !|Hang in there!
Comme d'habitude.|As usual.
Ne t'inquiète pas.|Don't worry.
Ne vous inquiétez pas.|Don't worry.
Laisse-moi tranquille !|Leave me alone!
Qu'en penses-tu ?|What do you think about it?
Qu'en pensez-vous ?|What do you think about it?
Ça y est !|That's it!
Il était une fois un roi.|Once upon a time there was a king.
""".strip().splitlines()
