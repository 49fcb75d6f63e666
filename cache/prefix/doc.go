// Package prefix is the prefix cache: it shares the cached state of past sequences with new ones that begin the same,
// so that the common prefix is not evaluated again.
//
// A [Tree] is a trie over keys, which stand for tokens and for whatever else determines a cache's content; see [Key]. A
// node's edge holds the keys from its parent's end to its own; snapshots of the layers are stored at the ends of nodes.
// Any number of sequences is live at once, each with a [Session]: Begin restores the longest prefix that all layers can
// restore, Snapshot stores the state at a point of the prefill, Close stores it at the end. The tree owns snapshots,
// which nobody writes to, up to a budget in bytes; nodes where a session stands are not evicted.
//
// State that cannot be restored is a miss, never an error: the tokens are evaluated again. At least one key of a prompt
// is always left to evaluate. Like package cache, this runs on the engine's thread.
package prefix
