// Streaming products with AVX2: 2 to stream_rows_of activation rows, bound by memory like a row product; see
// cpu/matmul/matmul.h. With more rows there are too few registers, and transposing the weights
// (cpu/matmul/small_batch/integers.h) is faster.
#pragma once

#include "cpu/matmul/stream/floats.h"
#include "cpu/matmul/stream/fp8_avx2.h"
#include "cpu/matmul/stream/quarters_avx2.h"

namespace ingot::cpu::INGOT_ISA {

// Returns the most activation rows that row_product accepts with these weights.
static int stream_rows_of(const Weights& w, Mode mode) {
  if (w.format == Format::plain || w.format == Format::fp8) {
    return kStreamedFloats;
  }
  if (w.format != Format::affine) {
    return 1;
  }
  return w.bits == 4 ? 3 : mode == Mode::i16 ? 4 : 1;
}

template <bool Wide>
static void stream_product(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y) {
  stream_product_avx2(w, x, n0, n1, y);
}

}  // namespace ingot::cpu::INGOT_ISA
