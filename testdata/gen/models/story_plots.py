"""The plots of the demo stories: each tells one story, sentence by sentence, and draws from the alternatives.

All of it was written for this project.
"""

import story_words as w


def lost(s):
    article, thing = s.rng.choice(w.TREASURES)
    doing, there = s.rng.choice(w.LAST_SEEN)
    first, second = s.rng.sample(w.SEARCHED, 2)
    s.set(thing=thing, article=article, doing=doing, there=there, first=first, second=second,
          relative=s.rng.choice(w.RELATIVES))
    s.open()
    s.say("{a} had lost {a.his} {thing}.", "That was when {a} noticed that {a.his} {thing} was gone.",
          "{a} looked everywhere for {a.his} {thing}.")
    s.say("It was a present from {a.his} {relative}, and {a.he} loved it more than anything.",
          "It was old and not worth much, but {a} could not sleep without it.", "")
    s.say("{a.He} looked {first} and {second}, but the {thing} was not there.",
          "{a.He} searched {first}, and then {second}. There was nothing but dust.",
          "It was not {first}, and it was not {second}.")
    s.say("At last {a} went to {c}, the {trade}, who was working {at}.",
          "{c}, the {trade}, saw {a} standing {at} with a sad face.",
          "{a} sat down on the steps, and {c} the {trade} stopped beside {a.him}.")
    s.say('"When did you last have it?" asked {c}.', '"Do not cry," said {c}. "Where were you yesterday?"',
          '"Think back," said {c}. "What did you do with it in your hand?"')
    s.say('{a} thought for a while. "I was {doing}," {a.he} said.', '"I was {doing}," said {a} slowly.')
    s.say('"Then let us look there," said {c}, and they went together.', "So they went back to the place together.",
          '"Then we know where to begin," said {c}.')
    s.say("And there was the {thing}, {there}.", "There it lay, {there}.", "They did not look for long: it was {there}.")
    s.say("{a} laughed and put the {thing} deep into {a.his} pocket.", "{a} hugged {c} and ran home to tell everyone.",
          'From then on {a} tied the {thing} to {a.his} coat with a piece of string.',
          '"A thing is only lost until you think of it," said {c}.')


def repair(s):
    article, thing, wrong, trade, how, proof = s.rng.choice(w.REPAIRS)
    s.trade(trade)
    s.set(thing=thing, article=article, wrong=wrong, how=how, proof=proof, pay=s.rng.choice(w.PAYMENTS))
    s.open()
    s.say("{a} found that the {thing} {wrong}.", "The {thing} {wrong}, and {a} did not know what to do.",
          "At home there was {article} {thing} that {wrong}.")
    s.say('"We shall have to throw it away," said {a.his} father.', '"We have no money for a new one," said {a.his} mother.',
          "Everyone said that it could not be mended.")
    s.say("But {a} went across the square to {c}, the {trade}.",
          "But {a} did not give up and went to see {c}, the {trade}.", "But {a} knew that {c}, the {trade}, had clever hands.")
    s.say("{c} came to see it and looked at it from all sides.", "{c} put on {c.his} glasses and looked at the damage.",
          '"Hm," said {c}, and scratched {c.his} chin.')
    s.say('"I have seen worse," {c.he} said. "Sit down and watch."', '"Hold the lamp for me," {c.he} said.',
          '"Good things deserve a second life," {c.he} said.')
    s.say("Then {c} {how}.", "All afternoon {a} watched while {c} worked. First {c.he} looked for the right tool. Then {c.he} {how}.",
          "Slowly and carefully, {c} {how}.")
    s.say('"What do I owe you?" asked {a}.', '"How can I thank you?" asked {a}.')
    s.say('"{pay}," said {c} with a smile.', '{c} shook {c.his} head. "{pay}," {c.he} said.')
    s.say("That night {proof}.", "When {a} came home, {proof}.", "The next day {proof}.")
    s.say("", "And {a} kept {a.his} promise.", "Since that day {a} has never thrown away a broken thing without asking {c} first.")


def casting(s):
    s.trade("founder")
    thing, purpose, result = s.rng.choice(w.CASTINGS)
    failure, why, remedy = s.rng.choice(w.FAILURES)
    s.set(thing=thing, the="the" + thing[thing.index(" "):], purpose=purpose, result=result, failure=failure, why=why,
          remedy=remedy)
    s.open()
    s.say("At the foundry, {c} was going to cast {thing} {purpose}.", "The town needed {thing} {purpose}, and so the people went to {c}, the founder.",
          "{c}, the founder, had promised to make {thing} {purpose}.")
    s.say("{a} was allowed to help.", "{a} asked if {a.he} could watch, and {c} gave {a.him} a leather apron.",
          "{a} carried coal until {a.his} hands were black.")
    s.say("They packed the sand around the pattern and lit the furnace.", "First they made a mould of sand, and then they melted the metal.")
    s.say("The metal glowed red, then orange, then yellow.", "Soon the metal ran like honey.", "Sparks flew up to the roof like small stars.")
    s.say("{c} poured it into the mould, and everyone held their breath.", "{c} lifted the ladle and poured.")
    s.say("But when they opened the mould, {failure}.", "But something was wrong: {failure}.")
    s.say('"Is it spoiled?" asked {a}.', '{a} was close to tears. "All that work," {a.he} said.', '"What now?" asked {a}.')
    s.say('"Metal can always be melted again," said {c}. "{why}."', '"{why}," said {c}. "Now we know better."')
    s.say("So they {remedy}, and then they tried again.", "They broke the casting into pieces. Then they {remedy}.")
    s.say("This time {the} was perfect.", "The second time {the} came out of the sand without a fault.")
    s.say("When it was in its place, {result}.", "All the town came to see it, and {result}.")
    s.say('"That was you and me," said {c} to {a}.', "{a} touched it every time {a.he} passed, and felt proud.",
          "And low on one side, where nobody looks, {c} had cut the name of {a} into the metal.")


def flood(s):
    s.season(s.rng.choice(["spring", "autumn"]))
    s.set(days=s.rng.choice(["three", "four", "five", "seven"]), sign="the clouds hung low over the hills", mood="wet")
    s.open()
    s.say("It rained for {days} days without a pause.", "For {days} days nobody saw the sun.")
    s.say("The river rose and turned brown.", "The river climbed over the steps and into the gardens.")
    s.say("{a} had put a stick into the bank, and every hour the water stood higher on it.",
          "From the window {a} counted the stones of the bridge that were still dry: nine, then six, then two.")
    s.say('"The bridge will not hold," {a} cried, and ran to {c}, the {trade}.', 'At midnight {a} woke {c}, the {trade}. "The river is coming," {a.he} said.')
    s.say("{c} rang the bell until every window was bright.", "{c} went from door to door and called the people together.")
    s.say("The founder brought sand, the miller brought sacks, and the children held the lanterns.",
          "Everyone came: the baker, the smith, the teacher and even the old people.")
    s.say("They filled sack after sack and built a wall along the bank.", "They stood in a long row and passed the sacks from hand to hand.")
    s.say("{a} was so tired that {a.he} could hardly stand, but {a.he} did not stop.", "{a} and {b} carried the small sacks, two at a time.")
    s.say("In the morning the rain ended, and the wall had held.", "When the sun rose, the water began to fall, and the bridge was still there.")
    s.say("The baker gave everyone warm rolls, and they ate them sitting on the wall.", "They were wet and cold and very happy.",
          '"You have good eyes," said {c} to {a}. "You have saved the bridge."')
    s.say("", "The stick is still there, and {a} looks at it whenever it rains.")


def animal(s):
    article, creature, voice, food, why = s.rng.choice(w.ANIMALS)
    s.set(article=article, animal=creature, voice=voice, food=food, why=why, named=s.rng.choice(w.ANIMAL_NAMES),
          place=s.rng.choice(["behind the mill", "beside the road", "near the foundry", "under a bush", "by the river"]))
    s.open()
    s.say("{a} was on {a.his} way home when {a.he} heard a small sound {place}.", "{place} {a} heard something that {voice}.")
    s.say("It was {article} {animal}. It {voice} and looked at {a} with big eyes.", "{a} bent down and saw {article} {animal}.")
    s.say("{why}.", "{why}, and nobody had helped it.")
    s.say('"Do not be afraid," said {a} softly.', '"You poor thing," said {a}.')
    s.say("{a.He} wrapped it in {a.his} jacket and carried it to {c}, the {trade}.", "Together with {b}, {a.he} took it to {c}, the {trade}.")
    s.say("{c} made a bed of straw beside the stove.", '"It needs warmth and rest," said {c}.')
    s.say("They gave it {food}, and it ate everything.", "{a} offered it {food}. At first it would not eat, but then it tried a little.")
    s.say("{a} stayed with it all night.", "Every day after school {a} came to look after it.")
    s.say('"It needs a name," said {c}. So {a} called it {named}.', "{a} called it {named}.")
    s.say("After a week {named} was strong and healthy.", "Soon {named} followed {a} everywhere.")
    s.say("{a} opened the door to let it go, but {named} came back before evening.",
          "When the day came to say goodbye, {named} did not want to leave.", "")
    s.say("It had found a home.", '"I think that it has chosen you," said {c}.', "And {named} lives there to this day.")


def mill(s):
    blockage, remedy = s.rng.choice(w.BLOCKAGES)
    if "frozen" in blockage:
        s.season("winter")
    elif "leaves" in blockage:
        s.season("autumn")
    s.trade("miller")
    s.set(blockage=blockage, remedy=remedy)
    s.open()
    s.say("There was no bread in the town that day.", "The baker stood in front of an empty oven.")
    s.say('"I have no flour," said the baker. "The mill has stopped."', '"What is the matter?" asked {a}. "The mill stands still," said the baker.')
    s.say("{a} and {b} ran along the river to see why.", "{a} took {b} by the hand, and they went up the stream to the mill.")
    s.say("{c}, the miller, sat in front of the silent wheel.", "{c}, the miller, walked up and down and did not know what to do.")
    s.say("{a} lay down on the wet stones and looked below the wheel.", "{b} listened, but {a} looked closely at the wheel.")
    s.say('"I can see it," {a.he} called. In the deep shadow, {blockage}.', "And {a} saw what was wrong: {blockage}.")
    s.say("The three of them {remedy}.", "{c} brought the tools, and together they {remedy}.")
    s.say("It was hard work, and their hands were sore.", "It took them until noon.", "Twice they had to rest.")
    s.say("Then the wheel groaned, moved a little, and began to turn.", "With a deep sigh the big wheel began to turn.")
    s.say("Soon the white flour fell into the sacks again.", "{c} laughed out loud and threw {c.his} hat into the air.")
    s.say("In the evening the whole town smelled of fresh bread, and the first loaf was for {a} and {b}.",
          "The baker gave {a} and {b} the first warm loaf, and they ate it on the bridge.")


def learn(s):
    skill, failure, advice, success = s.rng.choice(w.SKILLS)
    if skill == "skate":
        s.season("winter")
    elif skill in ("row", "swim", "ride a bicycle"):
        s.season("summer")
    s.set(skill=skill, failure=failure, advice=advice, success=success)
    s.open()
    s.say("More than anything {a} wanted to learn to {skill}.", "{a} had made up {a.his} mind: {a.he} would learn to {skill}.",
          "All the other children could {skill}, but {a} could not.")
    s.say("The first time {a.he} tried, {a.he} {failure}.", "{a.He} tried it in secret and {failure}.")
    s.say("The second time was no better.", "The second time it was even worse, and {b} laughed.")
    s.say('"I will never learn it," said {a}, and sat down in a corner.', '"It is too hard," said {a}.')
    s.say("{c}, the {trade}, had seen it all.", "{c} the {trade} put down {c.his} work and came over.")
    s.say('"I was worse than you when I began," {c.he} said.', '"Nobody is good on the first day," {c.he} said.')
    s.say('"{advice}."', '"Let me tell you a secret. {advice}."')
    s.say("{a} tried again, and again the next day, and the day after that.", "Every evening {a} practised for one hour.",
          "{a} nodded and began once more.")
    s.say("And one morning {a} {success}.", "A week later {a.he} {success}.", "At the end of the month {a} {success}.")
    s.say('"Can you show me how to do it?" asked {b}.', "{c} clapped {c.his} hands.", "{b} stared with an open mouth.")
    s.say('"Of course," said {a}. "{advice}."', '"It is not hard," said {a}, "when you have a good teacher."',
          "{a} was so proud that {a.he} forgot to eat {a.his} supper.")


def gift(s):
    trade, material, thing, use = s.rng.choice(w.GIFTS)
    s.trade(trade)
    s.set(material=material, thing=thing, use=use, relative=s.rng.choice(w.RELATIVES))
    s.open()
    s.say("The next day was the birthday of {a.his} {relative}, and {a} had no present.",
          "{a} wanted to give {a.his} {relative} a present, but {a.his} pockets were empty.")
    s.say("In the shops everything was too expensive.", "{a.He} stood in front of the shops and counted two small coins.")
    s.say('"You do not need money," said {c}, the {trade}. "You have two hands."',
          '"Why do you look so sad?" asked {c}, the {trade}. {a} told {c.him} everything.')
    s.say("{c} gave {a.him} {material}.", "{c} looked under the bench and found {material}.")
    s.say("They worked until the lamps were lit.", "{a} worked so hard that {a.he} forgot the time.")
    s.say("{c} showed {a.him} how to hold the tools, but {a} did the rest alone.", "Twice it went wrong, and twice {a} began again.")
    s.say("In the end there was {thing}, {use}.", "When it was done, it was {thing}, {use}.")
    s.say("{a.His} {relative} opened the paper and was silent for a moment.", "In the morning {a} put it beside {a.his} {relative}'s plate.")
    s.say('"Where did you buy this?" she asked.', '"Who made this?" she asked.')
    s.say('"I made it," said {a}.', '"It is from me and nobody else," said {a}.')
    s.say("She kissed {a.him} and said that it was the best present in the world.", "And of all the presents it was the one she loved most.")


def quarrel(s):
    article, toy, where, broke, mended, result = s.rng.choice(w.TOYS)
    s.season({"sled": "winter", "kite": "autumn", "raft": "summer", "swing": "summer"}.get(toy, "spring"))
    s.set(article=article, toy=toy, where=where, broke=broke, mended=mended, result=result)
    s.open()
    s.say("{a} and {b} had made {article} {toy} together.", "{a} and {b} had one {toy} between them.")
    s.say("They met {where}, and both wanted to be first.", "{where} they began to quarrel.")
    s.say('"It was my idea," said {a}. "But I did the work," said {b}.', '"Let go," cried {a}. "You let go," cried {b}.')
    s.say("{a} pulled on one side and {b} on the other, until {broke}.", "Neither of them would give way, and so {broke}.")
    s.say("For a while nobody spoke.", "They looked at each other, and then at the ground.")
    s.say("{a} went home alone, and so did {b}.", "{b} turned away, and {a} kicked a stone down the path.")
    s.say("That evening {a} could not eat. It was dull without {b}.", "The next day was long and empty for both of them.")
    s.say('"A thing can be mended more easily than a friendship," said {c}, the {trade}. "So begin with the thing."',
          '"Who is right?" asked {a}. {c} the {trade} shrugged. "Who is happy?" {c.he} asked.')
    s.say('So {a} knocked on the door of {b}. "I am sorry," {a.he} said. "So am I," said {b}.',
          "On the way {a} met {b}, who was coming to see {a.him}. They both said sorry at the same moment and laughed.")
    s.say("They {mended}.", "Side by side they {mended}.")
    s.say("This time {b} was first, and then it was the turn of {a}.", "They took turns until it was dark.")
    s.say("And now {result}.", "It was not as pretty as before, but {result}.")


def fog(s):
    s.season("autumn")
    s.set(sign="mist lay over the river", mood="grey")
    s.open()
    s.say("{a} had to cross the river with {c}, the {trade}.", "{c}, the {trade}, was taking {a} across the river in a small boat.")
    s.say("In the middle of the water the fog became so thick that they could not see the bank.",
          "Halfway across, the fog closed around them like wool.")
    s.say('"Which way is home?" asked {a}.', "{c} stopped rowing and listened.")
    s.say("There was no sound but the water.", "They turned once, and then they did not know any more where they were.")
    s.say('"When you cannot see, keep still and use your ears," said {c}.', '"Do not be afraid," said {c}. "Fear makes more noise than the river."')
    s.say("{a} closed {a.his} eyes.", "{a} held {a.his} breath.")
    s.say("Far away, very softly, a bell was ringing.", "Then {a.he} heard it: the bell of the foundry, slow and deep.")
    s.say('"There," {a.he} whispered, and pointed into the fog.', '"Over there," {a.he} said. "The bell is on our left."')
    s.say("{c} rowed towards the sound, and it grew louder with every stroke.", "Stroke by stroke they followed the bell.")
    s.say("At last the boat touched the sand.", "At last they saw a lantern, and below it the landing place.")
    s.say("{b} stood there with the rope of the bell in both hands.", "It was {b} who had been ringing the bell for an hour.")
    s.say('"I thought that you might need it," said {b}.', '"We heard you," said {a}, and hugged {b}.')


def mystery(s):
    sign, went, trade, truth = s.rng.choice(w.MYSTERIES)
    if "snow" in sign:
        s.season("winter")
    s.trade(trade)
    s.set(strange=sign, went=went, truth=truth, time="evening")
    s.open()
    s.say("Then {a} saw something strange: {strange}." if "sound" not in sign and "smell" not in sign and "singing" not in sign
          else "Then {a} noticed something strange: {strange}.")
    s.say('"It is a ghost," said {b}.', '"Let us run away," whispered {b}.', '"Perhaps it is a thief," said {b}.')
    s.say('"There are no ghosts in Emberford," said {a}, but {a.his} voice was thin.', '"I want to know what it is," said {a}.')
    s.say("Hand in hand they {went}.", "{a} took a deep breath. Then the two of them {went}.")
    s.say("Their hearts were beating like hammers.", "A board creaked, and both of them jumped.", "It was so quiet that they could hear their own steps.")
    s.say("And what did they see?", "But it was not a ghost.", "There was a shadow on the wall, and it had a very long nose.")
    s.say("It was only {c}, the {trade}, who {truth}.", "{c}, the {trade}, {truth}.")
    s.say('"Good evening," said {c}. "Can you not sleep either?"', '"You are just in time," said {c}. "I need somebody to hold the light."')
    s.say("They laughed until they had to sit down.", "{b} turned red, and {a} began to laugh.")
    s.say("They stayed and helped, and went home under the stars.", "{c} gave them hot milk and told them how it was done.")
    s.say("Since then they have never been afraid of the dark.", '"Most ghosts are only people at work," said {c}.')


def garden(s):
    seed, crop, dish = s.rng.choice(w.SEEDS)
    trouble, remedy = s.rng.choice(w.TROUBLES)
    s.season("spring")
    s.trade("gardener")
    s.set(seed=seed, crop=crop, dish=dish, trouble=trouble, remedy=remedy)
    s.open()
    s.say("{c}, the gardener, gave {a} {seed}.", "At the market {a} got {seed} from {c}, the gardener.")
    s.say('"Put it into good earth and wait," said {c}.', '"Waiting is the hardest part," said {c}.')
    s.say("{a} dug a bed beside the wall and planted it there.", "{a} planted it in the sunny corner behind the house.")
    s.say("Every morning {a.he} looked, and every morning there was only earth.", "For two weeks nothing happened.")
    s.say("Then, one day, there was a small green leaf.", "Then a green tip came out of the ground, no longer than a fingernail.")
    s.say("But {trouble}.", "All went well until {trouble}.")
    s.say("{a} did not give up. {a.He} {remedy}.", "So {a} {remedy}, and {b} helped.")
    s.say("The summer came and went.", "The plants grew and grew.")
    s.say("In autumn {a} had {crop}.", "And when the leaves turned yellow, {a} had {crop}.")
    s.say("{a.His} mother made {dish}, and all the neighbours came.", "It was enough for {dish}, and the whole street ate together.")
    s.say("{a} kept the best seeds in a paper bag for the next year.", '"And all that from so little," said {a}.',
          '"Now you are a gardener," said {c}.')


def market(s):
    ware, idea = s.rng.choice(w.WARES)
    if ware == "wool socks":
        s.season("winter")
    s.set(ware=ware, idea=idea, price=s.rng.choice(["two", "three", "five"]))
    s.open()
    s.say("It was market day, and {a} was selling {ware} for {c}, the {trade}.", "{c}, the {trade}, was ill, and so {a} stood at the market and sold {ware}.")
    s.say("But the people walked past and did not stop.", "An hour went by, and nobody had bought anything.")
    s.say('"Only {price} coins!" called {a}. Nobody turned around.', "On the left they sold hats, and on the right they sold fish, but nobody wanted {ware}.")
    s.say('"You have to show them what they are missing," said {b}.', "{a} rested {a.his} chin on {a.his} hand and thought.")
    s.say("Then {a.he} had an idea.", "Suddenly {a.he} jumped up.")
    s.say("{a.He} {idea}.", "While {b} watched the table, {a} {idea}.")
    s.say("First one person came, then three, then a whole crowd.", "People stopped, smiled and took out their purses.")
    s.say("By noon the table was empty.", "Before the clock struck four, everything was sold.")
    s.say("{a} brought the money to {c} and put it on the table, coin by coin.", '"How did you do that?" asked {c} when {a.he} came back with a full purse.')
    s.say('"I gave a little away," said {a}, "and they came for the rest."', "{c} counted it twice and gave {a} a shining coin.")
    s.say("With it {a} bought a bag of nuts and shared them with {b}.", "")


def errand(s):
    parcel, to, why = s.rng.choice(w.PARCELS)
    s.season("winter")
    s.set(parcel=parcel, the="the" + parcel[parcel.index(" "):], to=to, why=why)
    s.open()
    s.say("{c}, the {trade}, had {parcel} for {to}.", "Somebody had to bring {parcel} to {to}, who had {why}.")
    s.say('"Who will go in this weather?" asked {c}.', "The road was deep in snow, and nobody wanted to go.")
    s.say('"I will go," said {a}.', "But {a} was already tying {a.his} boots.")
    s.say("{a.He} put it under {a.his} coat and set out.", "{b} lent {a.him} a pair of warm gloves, and {a.he} set out.")
    s.say("The snow came up to {a.his} knees.", "The wind pushed against {a.him} like a big dog.")
    s.say("Halfway up the hill {a.he} lost the path.", "Soon {a.he} could not tell the path from the field.")
    s.say("Then {a.he} remembered what {c} had said: keep the sound of the river behind you.",
          "Then {a.he} saw the smoke of a chimney and walked towards it.")
    s.say("Step by step {a.he} went on.", "{a.He} sang a song to keep up {a.his} courage.")
    s.say("It was almost dark when {a.he} knocked on the door.", "At last a door opened, and there was light and the smell of soup.")
    s.say('"You came all this way alone?" asked {to}.', '"I did not think that anyone would come," said {to}.')
    s.say("{a} held out {the}. It was still dry.", '"Here it is," said {a}, and held out {the}.')
    s.say("{a.He} had to stay for the night, and slept beside the fire like a stone.",
          "They sat by the fire and ate soup, and in the morning the sky was blue.")
    s.say("When {a} came home, everyone wanted to hear the story.", "Down in the town they had put a lamp in every window for {a.him}.")


def lamps(s):
    s.trade("lamp keeper")
    s.set(time="evening", number=s.rng.choice(["twelve", "twenty", "thirty"]))
    s.open()
    s.say("In Emberford there were {number} street lamps, and {c} lit them every night.", "{c}, the lamp keeper, had lit the {number} lamps of the town for many years.")
    s.say("But that day {c} lay in bed with a fever.", "But {c} had hurt {c.his} foot and could not climb the ladder.")
    s.say('"The town will be dark tonight," {c.he} said.', '"And the boats will not find the landing place," {c.he} said.')
    s.say('"Give me the ladder," said {a}. "I know how it is done."', "{a} had watched {c.him} a hundred times. {a.He} put on {a.his} coat and took the ladder.")
    s.say("So {a} took the long pole and went out.", "{a} carried the oil, and {b} carried the ladder.")
    s.say("The first lamp would not burn, because the wick was wet.", "At the first lamp the match went out, and at the second it went out again.")
    s.say("{a} dried the wick with {a.his} sleeve and tried once more.", '"Hold your hat in front of the wind," said {b}.')
    s.say("Then a small flame stood behind the glass.", "A yellow light fell on the wet stones.")
    s.say("One after the other the lamps began to shine, along the street, across the square and over the bridge.",
          "From lamp to lamp they went, and behind them the street was bright.")
    s.say("Late at night the last boat came home safely.", "Out on the river a fisher saw the lights and turned the boat towards them.")
    s.say("From the window {c} counted the lamps, and not one was missing.", "{c} saw the glow on the ceiling and fell asleep with a smile.")
    s.say('The next day {c} gave {a} a small lantern. "For the second lamp keeper of Emberford," {c.he} said.', "")


PLOTS = [lost, repair, casting, flood, animal, mill, learn, gift, quarrel, fog, mystery, garden, market, errand, lamps]
