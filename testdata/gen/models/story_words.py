"""The words of the stories: people, seasons and trades of the foundry town of Emberford.

All of it was written for this project.
"""

GIRLS = ["Ada", "Ivy", "Mara", "Nell", "Rosa", "Tilda", "Wren", "Zo\u00eb"]
BOYS = ["Ben", "Finn", "Hugo", "Jonas", "Leo", "Oskar", "Sam", "Theo"]
WOMEN = ["Edith", "Greta", "Hanna", "Lucia", "Marta", "Olga"]
MEN = ["Anton", "Emil", "Henrik", "Pavel", "Victor", "Walter"]

TRAITS = ["curious", "patient", "shy", "brave", "clever", "careful", "quiet", "cheerful", "stubborn", "kind"]

HOMES = [
    "in a narrow house behind the foundry",
    "above the bakery",
    "beside the old stone bridge",
    "at the edge of the orchard",
    "in the last house before the hills",
    "near the mill, where the river is loud",
    "in a small room over the clock shop",
    "on the street of the weavers",
]

# Season: words for the day, and what is seen then.
SEASONS = {
    "spring": (
        ["mild", "bright", "windy", "wet"],
        ["the first swallows had come back", "white blossom covered the orchard", "the snow was gone from the hills",
         "rain tapped on the windows", "the storks walked in the meadow"],
    ),
    "summer": (
        ["warm", "hot", "golden", "still"],
        ["the air smelled of hay", "bees hummed in the gardens", "the stones of the square were warm",
         "the river ran slow and green", "every door in the street stood open"],
    ),
    "autumn": (
        ["grey", "misty", "windy", "cool"],
        ["yellow leaves blew along the street", "mist lay over the river", "the apples were ripe",
         "smoke rose from every chimney", "the geese flew south in long lines"],
    ),
    "winter": (
        ["cold", "dark", "white", "clear"],
        ["snow lay on the roofs", "the river was frozen at its edges", "frost drew flowers on the windows",
         "the wind sang in the chimneys", "icicles hung from the bridge"],
    ),
}

TIMES = ["morning", "morning", "afternoon", "evening", "day"]

# Trades, and where they work.
TRADES = [
    ("baker", "at the bakery"),
    ("founder", "at the foundry"),
    ("smith", "in the smithy"),
    ("miller", "at the mill"),
    ("weaver", "at the loom"),
    ("potter", "beside the kiln"),
    ("clockmaker", "in the clock shop"),
    ("gardener", "in the orchard"),
    ("teacher", "at the school"),
    ("carpenter", "in the workshop"),
    ("fisher", "down by the boats"),
    ("beekeeper", "among the hives"),
    ("lamp keeper", "under the street lamps"),
]

# Small things that are lost: article, thing.
TREASURES = [
    ("a", "silver whistle"), ("a", "red scarf"), ("a", "little brass key"), ("a", "wooden horse"), ("a", "blue mitten"),
    ("a", "copper coin"), ("a", "music box"), ("a", "green umbrella"), ("a", "leather notebook"), ("an", "old pocket watch"),
    ("an", "ivory comb"), ("a", "painted spoon"),
]

# What the owner did with it last, and where it is.
LAST_SEEN = [
    ("feeding the ducks by the river", "among the reeds, wet but whole"),
    ("climbing the old apple tree", "caught on the lowest branch"),
    ("carrying wood to the stove", "under the last log of the woodpile"),
    ("playing beside the mill", "on the flat stone next to the mill wheel"),
    ("drawing water from the well", "on the edge of the well, still shining"),
    ("sweeping the floor of the foundry", "on the workbench, half covered with sand"),
    ("buying bread", "on the windowsill of the bakery, dusty with flour"),
    ("watching the boats", "at the bottom of a fishing basket"),
    ("helping in the stable", "in the hay, where the old horse had slept on it"),
    ("counting stars on the bridge", "between two stones of the bridge"),
]

SEARCHED = [
    "under the bed", "behind the stove", "in every pocket", "in the woodshed", "among the flour sacks", "on the stairs",
    "along the garden wall", "below the window", "inside the big cupboard", "on every shelf",
]

# Things that break: article, thing, what is wrong, who mends it, how, and the proof.
REPAIRS = [
    ("a", "kettle", "had begun to leak", "smith", "closed the hole with a drop of hot tin", "the kettle sang on the stove again"),
    ("a", "clock", "had stopped at noon", "clockmaker", "cleaned each little wheel and put a drop of oil on the spring",
     "the clock ticked as if it had never been tired"),
    ("a", "chair", "had lost a leg", "carpenter", "cut a new leg from a piece of ash and glued it firmly",
     "the chair stood straight on all four legs"),
    ("a", "boat", "had a gap between two planks", "carpenter", "pressed rope and black tar into the gap",
     "the boat floated and not a drop came in"),
    ("a", "winter coat", "had a torn sleeve", "weaver", "sewed the sleeve with strong grey thread",
     "the coat was warmer than before"),
    ("a", "school bell", "had a crack from top to bottom", "founder", "melted the bronze and poured it into a new mould",
     "the bell rang clear across the roofs"),
    ("a", "milk jug", "had lost its handle", "potter", "shaped a new handle and baked it in the kiln",
     "nobody could see where the jug had been broken"),
    ("a", "lantern", "had a broken pane", "lamp keeper", "fitted a new piece of glass and trimmed the wick",
     "the lantern threw a round yellow light on the wall"),
    ("an", "iron gate", "hung from one hinge", "smith", "heated the hinge until it was red and beat it straight",
     "the gate swung without a sound"),
    ("a", "fishing net", "had a hole as big as a pike", "fisher", "knotted new cord across the hole",
     "the net came up full of silver fish"),
    ("a", "bucket", "had lost its hoop", "smith", "bent a new hoop and drove it down over the staves",
     "the bucket held water to the brim"),
]

PAYMENTS = [
    "Bring me a loaf of bread on Sunday", "Sweep the floor and we are even", "Tell me a story while I work",
    "Keep your coins and say good morning to me tomorrow", "Carry these letters up the hill for me",
    "Bring me six red apples when they are ripe", "Sing me the song about the river",
]

# Work of the foundry: what is cast, for whom, and what it does when it is done.
CASTINGS = [
    ("a bell", "for the school", "it rang so clear that the birds rose from the roofs"),
    ("an anchor", "for the ferry", "it held the ferry fast in the strongest current"),
    ("a gear wheel", "for the mill", "it turned with the water, slow and even"),
    ("a lamp post", "for the bridge", "its light lay on the river like a golden coin"),
    ("a gate", "for the orchard", "it closed with a soft click"),
    ("a soup pot", "for the kitchen of the inn", "it fed forty people on the first night"),
    ("a weather cock", "for the church tower", "it turned at the first breath of wind"),
]

# How a casting fails, why, and what is done about it.
FAILURES = [
    ("the metal was full of little holes", "The sand was too wet, and steam got into the metal",
     "dried the sand beside the furnace all night"),
    ("only half of the mould was filled", "The metal was too cold to run into every corner",
     "put more coal on the fire and waited until the metal was as bright as the sun"),
    ("it cracked with a sound like breaking ice", "We opened the mould too early",
     "left the mould alone until the next morning"),
    ("one side was rough and crooked", "The mould moved while we were pouring",
     "tied the two halves of the mould together with strong chains"),
]

# Animals: article, animal, its voice, what it eats, why it is in trouble.
ANIMALS = [
    ("a", "kitten", "mewed", "a saucer of milk", "It had fallen into an empty barrel"),
    ("a", "little goat", "bleated", "a handful of clover", "Its rope was caught between two stones"),
    ("a", "duckling", "peeped", "some crumbs of bread", "It had lost its mother in the reeds"),
    ("a", "puppy", "whined", "a bone from the kitchen", "It had a thorn in its paw"),
    ("an", "owl", "hooted", "a scrap of meat", "Its wing was hurt and it could not fly"),
    ("a", "hedgehog", "sniffed", "a slice of apple", "It was cold and could not find its nest"),
    ("a", "goose", "hissed", "a bowl of oats", "It had cut its foot on a piece of ice"),
    ("a", "lamb", "cried", "some warm milk", "It had strayed from the flock"),
]

ANIMAL_NAMES = ["Button", "Cinder", "Pepper", "Thimble", "Biscuit", "Clover", "Rusty", "Moss"]

# What stops the mill wheel, and how it is freed.
BLOCKAGES = [
    ("a thick branch was caught in the wheel", "tied a rope to the branch and pulled until it came free"),
    ("the water had frozen around the wheel", "broke the ice with a long iron bar, piece by piece"),
    ("wet leaves had closed the gate of the stream", "raked the leaves away until the water ran again"),
    ("an old fishing net was wound around the axle", "cut the net, knot after knot, with a sharp knife"),
    ("a pair of beavers had built a dam above the mill", "dug a small channel beside the dam, so that both could stay"),
]

# Skills: what, the failure, the advice, the success.
SKILLS = [
    ("skate", "fell on the ice", "Bend your knees and look ahead, not down",
     "glided over the frozen pond from one end to the other"),
    ("knit", "dropped half of the stitches", "Go slowly and count every row",
     "held up a striped scarf without a single hole"),
    ("row", "turned the boat in circles", "Pull both oars at the same moment",
     "rowed straight across the river"),
    ("bake bread", "made a loaf as hard as a brick", "Give the dough time to rise",
     "took a round brown loaf out of the oven"),
    ("play the fiddle", "made the cats run out of the room", "Let the bow rest on the string and breathe",
     "played a whole dance without a wrong note"),
    ("swim", "swallowed half of the river", "The water will carry you if you let it",
     "swam to the island and back"),
    ("whistle", "blew and blew and made no sound", "Make your mouth small and think of a bird",
     "whistled so well that a blackbird answered"),
    ("ride a bicycle", "rode into the hedge", "Keep turning the pedals and trust the wheels",
     "rode twice around the market square"),
    ("shape clay", "made a bowl that fell over", "Keep your hands wet and the wheel slow",
     "lifted a smooth round bowl from the wheel"),
]

# Homemade presents: with whom, from what, what, and its use.
GIFTS = [
    ("carpenter", "a piece of cherry wood", "a small box with a lid", "to keep her letters in"),
    ("potter", "a lump of blue clay", "a round cup", "for her morning tea"),
    ("weaver", "the ends of old wool", "a striped blanket", "to warm her knees"),
    ("smith", "a bent nail and a scrap of iron", "a hook in the shape of a swan", "to hang her coat on"),
    ("beekeeper", "a comb of yellow wax", "six straight candles", "for the long evenings"),
    ("baker", "flour, honey and nuts", "a cake as round as the moon", "to eat with all her neighbours"),
    ("founder", "a spoonful of leftover bronze", "a tiny bell", "to ring when she wanted company"),
]

RELATIVES = ["grandmother", "aunt", "mother"]

# Toys of a quarrel: article, toy, where, how it breaks, how it is mended.
TOYS = [
    ("a", "kite", "on the hill", "it tore down the middle", "glued a strip of paper over the tear", "it flew higher than the church tower"),
    ("a", "sled", "on the snowy slope", "one runner snapped", "nailed a new runner to the frame", "it was fast enough for two"),
    ("a", "raft", "at the bend of the river", "it came apart in the reeds", "tied the logs together again with new rope",
     "it carried both of them to the island"),
    ("a", "swing", "under the oak", "the rope broke", "made a stronger knot and tested it with a sack of flour",
     "it went up as high as the leaves"),
    ("a", "ball", "in the market square", "it rolled into a thorn bush and went flat", "sewed a patch on the leather",
     "it bounced better than before"),
]

# Strange signs and what was behind them.
MYSTERIES = [
    ("a light was moving in the old tower", "climbed the stairs of the tower", "clockmaker",
     "was oiling the great clock by the light of a candle"),
    ("there was a tapping sound under the bridge", "climbed down to the water", "fisher",
     "was nailing a new plank to a boat"),
    ("there was a red glow in the windows of the foundry", "looked through the foundry door", "founder",
     "was pouring the last metal of the day into a mould"),
    ("a sweet smell came from the empty house", "pushed open the creaking door", "baker",
     "was trying a new oven and a new kind of cake"),
    ("somebody was singing in the orchard after dark", "crept between the trees with a lantern", "beekeeper",
     "was singing to the bees to keep them calm"),
    ("small footprints led across the fresh snow", "followed the footprints as far as the mill", "miller",
     "was feeding a family of hares"),
]

# Seeds, what grows, and what is made of it.
SEEDS = [
    ("a pumpkin seed", "a pumpkin as big as a cartwheel", "a pot of soup"),
    ("a single bean", "a beanstalk that reached the roof", "a stew"),
    ("a sunflower seed", "a sunflower taller than the door", "a tray of roasted seeds"),
    ("an old potato", "three sacks of potatoes", "a mountain of pancakes"),
    ("a strawberry plant", "more strawberries than leaves", "twelve jars of jam"),
]

TROUBLES = [
    ("no rain fell for three weeks", "carried water from the river every evening"),
    ("the snails came in the night", "put a ring of ash around the bed"),
    ("a late frost came over the hills", "covered the bed with straw and an old blanket"),
    ("the crows sat on the fence and waited", "made a straw man with a hat and a broom"),
]

# Wares of the market and the idea that sells them.
WARES = [
    ("honey", "put a drop of honey on a piece of warm bread for everyone who passed"),
    ("clay whistles", "played a merry tune on one of the whistles"),
    ("wool socks", "let an old man with cold feet try on a pair"),
    ("apple cake", "cut one cake into small pieces and gave them to the children"),
    ("candles", "waited until it was dark and lit all the candles at once"),
    ("iron pans", "cooked an egg in one of the pans, right there in the square"),
]

# Errands up the hill: what is carried, to whom, why it is needed.
PARCELS = [
    ("a bottle of medicine", "the shepherd on the hill", "a bad cough"),
    ("a letter", "the widow at the lighthouse", "a son at sea"),
    ("a basket of bread", "the woodcutter in the forest", "an empty cupboard"),
    ("a new spectacle glass", "the old teacher above the town", "a shelf full of books and weak eyes"),
    ("a can of oil", "the keeper of the lighthouse", "a lamp that had almost gone out"),
]
