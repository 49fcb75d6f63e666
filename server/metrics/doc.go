// Package metrics counts requests, responses and tokens, and writes them in Prometheus' text format.
//
// Contract: counting a response's pieces takes no locks and allocates nothing. The number of models with counters of
// their own is bounded. A Metrics is safe for concurrent use; its zero value has no counts.
package metrics
