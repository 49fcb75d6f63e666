package runtime

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestSamplingCheck(t *testing.T) {
	if err := (Sampling{Temperature: math.NaN()}).Check(); !errors.Is(err, ErrSampling) {
		t.Errorf("NaN temperature: %v", err)
	}
	for range 100 {
		err := (Sampling{Temperature: math.NaN(), TopP: math.NaN(), FrequencyPenalty: math.NaN()}).Check()
		if err == nil || !strings.HasPrefix(err.Error(), "temperature ") {
			t.Fatalf("three invalid parameters, the error must name the first: %v", err)
		}
	}
	if err := (Sampling{LogitBias: map[int32]float64{3: math.Inf(1)}}).Check(); !errors.Is(err, ErrSampling) {
		t.Errorf("infinite bias: %v", err)
	}
	if err := (Sampling{Temperature: 0.8, TopP: 0.9}).Check(); err != nil {
		t.Error(err)
	}
}
