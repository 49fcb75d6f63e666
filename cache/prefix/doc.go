// Package prefix remembers what past sequences have in their caches, so that a new one which begins like one of them does not
// evaluate that part again.
//
// A [Tree] is a trie over keys, which stand for tokens (and for what else decides a cache's content: see [Key]). A node's
// edge holds the keys from its parent's end to its own; snapshots of the layers lie at the ends of nodes. Any number of
// sequences is live at once, each with a [Session]: Begin restores the longest prefix that the layers can go back to, Snapshot
// keeps the state at a point of the prefill, Close keeps it at the end. A live sequence owns its memory; the tree owns copies
// only, up to a budget of bytes, and nodes that a session stands on are not evicted.
//
// What cannot be restored is a miss, never an error: the tokens are evaluated again. At least one key of a prompt is always left to
// evaluate. Like everything in package cache, this runs on the engine's thread.
package prefix
