package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// report collects the rounds.
type report struct {
	shape  string
	source source
	rounds int
	hash   []float64 // MB/s on one core
	push   map[string][]time.Duration
	pull   map[string][]time.Duration
}

func newReport(shape string, s source, rounds int) *report {
	return &report{shape: shape, source: s, rounds: rounds, push: map[string][]time.Duration{},
		pull: map[string][]time.Duration{}}
}

func (r *report) add(client string, push, pull time.Duration) {
	r.push[client] = append(r.push[client], push)
	r.pull[client] = append(r.pull[client], pull)
}

// rate is the median in MB/s, or 0 without samples.
func (r *report) rate(all map[string][]time.Duration, client string) float64 {
	if len(all[client]) == 0 {
		return 0
	}
	return math.Round(float64(r.source.bytes) / 1e6 / median(all[client]).Seconds())
}

func median[T ~int64 | ~float64](values []T) T {
	v := slices.Sorted(slices.Values(values))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// limit is the rate at which both sides can hash every byte once if all cores do nothing else.
func (r *report) limit() float64 { return median(r.hash) * float64(cores()) / 2 }

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %.2f GB in %d blobs; medians of %d rounds; ",
		r.shape, float64(r.source.bytes)/1e9, r.source.blobs, r.rounds)
	fmt.Fprintf(w, "sha256 %.0f MB/s on one core, limit of hashing on both sides %.0f MB/s on %d\n\n",
		median(r.hash), r.limit(), cores())
	fmt.Fprintln(w, "| client | push s | MB/s | of limit | ingot is | pull s | MB/s | of limit | ingot is |")
	fmt.Fprintln(w, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, name := range names {
		if len(r.push[name]) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |%s%s\n", strings.ReplaceAll(name, "_", "-"), r.cells(r.push, name), r.cells(r.pull, name))
	}
}

func (r *report) cells(all map[string][]time.Duration, name string) string {
	ratio := ""
	if name != "ingot" && len(all["ingot"]) > 0 {
		ratio = fmt.Sprintf("%.2f times as fast", median(all[name]).Seconds()/median(all["ingot"]).Seconds())
	}
	return fmt.Sprintf(" %.2f | %.0f | %.0f%% | %s |", median(all[name]).Seconds(), r.rate(all, name),
		100*r.rate(all, name)/r.limit(), ratio)
}

// write writes the JSON file; all values are in MB/s.
func (r *report) write(path string) error {
	rates := func(all map[string][]time.Duration) map[string]float64 {
		m := map[string]float64{}
		for name := range all {
			m[name] = r.rate(all, name)
		}
		return m
	}
	b, err := json.MarshalIndent(struct {
		Push map[string]float64 `json:"push"`
		Pull map[string]float64 `json:"pull"`
		Hash float64            `json:"sha256"`
	}{rates(r.push), rates(r.pull), math.Round(median(r.hash))}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// hashRate measures SHA-256 on one core, in MB/s.
func hashRate() float64 {
	b := make([]byte, 64<<20)
	begun := time.Now()
	sha256.Sum256(b)
	return float64(len(b)) / 1e6 / time.Since(begun).Seconds()
}
