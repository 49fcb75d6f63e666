// Products of activations with the rows of a weight matrix, y = x W^T: what kernels of one instruction set offer, and how
// they are put to work.
#pragma once

#include <cstdint>
#include <functional>

#include "cpu_types.h"

namespace ingot::cpu {

// How the elements of a weight matrix are stored. Packed codes are a little-endian stream of bits within a row
// (mlx 0.32.4, backend/cpu/quantized.cpp); a group of consecutive codes of a row has one scale and, if affine, one bias.
enum class Format {
  plain,   // float32, float16 or bfloat16
  affine,  // unsigned codes: scale * code + bias
  fp4,     // e2m1 codes, scales e8m0 (mxfp4) or e4m3 (nvfp4)
  fp8,     // e4m3 codes, scales e8m0 (mxfp8)
};

enum class ScaleType { f32, f16, bf16, e8m0, e4m3 };

struct Weights {
  const uint8_t* codes = nullptr;
  const void* scales = nullptr;
  const void* biases = nullptr;
  int64_t rows = 0;     // outputs
  int64_t columns = 0;  // inputs
  Format format = Format::plain;
  int bits = 0;   // of a code; of an element where plain
  int group = 0;  // codes that share a scale
  ScaleType scale_type = ScaleType::f32;
  Type type = Type::f32;  // of plain elements

  int64_t row_bytes() const { return columns * bits / 8; }
  int64_t groups() const { return columns / group; }
  // Bytes of a scale, and of a bias.
  int scale_bytes() const {
    const bool byte = scale_type == ScaleType::e8m0 || scale_type == ScaleType::e4m3;
    return byte ? 1 : scale_type == ScaleType::f32 ? 4 : 2;
  }
};

// What activations become before they meet weights.
enum class Mode { f32, i16, i8, bf16 };

constexpr bool has_integers(Mode m) { return m == Mode::i16 || m == Mode::i8; }

// Columns are padded to a multiple of a step; what is added is zero.
constexpr int kStep = 64;
// Weights of that many columns are unpacked at a time, for a tile of rows.
constexpr int kDepth = 512;
// Activation rows that meet an unpacked tile before the next.
constexpr int kRowBlock = 256;

// How a kernel wants its activations.
struct Layout {
  Mode mode = Mode::f32;
  bool nibbles = false;  // order within 8 columns: 0 4 1 5 2 6 3 7 as int16, 0 2 4 6 1 3 5 7 as bytes
  bool vector = false;   // rows by themselves, for row products
  bool small_batch = false;      // for few_product, else for tile_product
  bool winograd = false;  // int16 for products of sums, see cpu_winograd_x86.h
  int block = kStep;     // columns that share a scale of activations: 16, 32 or 64

  bool operator==(const Layout&) const = default;
};

// Activations in a layout. They come in stretches of kDepth columns, so that what meets an unpacked tile lies together; in
// a stretch rows lie in blocks of a kernel's number of rows; a block holds, for each pair (int16, bfloat16), four (int8) or single
// column (f32), that element of each of its rows.
struct Activations {
  Layout layout;
  int64_t rows = 0, columns = 0;  // columns padded
  void* data = nullptr;
  float* scales = nullptr;  // [rows][columns / block], of integers
  float* sums = nullptr;    // [rows][columns / block], of the activations themselves
  int32_t* corrections = nullptr;  // [rows][columns / block], what products of sums have too much, modulo 2^32
};

// The element where column k, a multiple of kStep, of the block of n rows that begins at row m lies.
static inline int64_t packed_offset(const Activations& a, int64_t m, int64_t k, int n) {
  int64_t from = k / kDepth * kDepth, wide = a.columns - from < kDepth ? a.columns - from : kDepth;
  return from * a.rows + m * wide + (k - from) * n;
}

// Takes rows [m0, m1) of a tile's results as soon as they are whole: what their stores wait for, the products of other rows hide.
struct RowsCallback {
  void (*call)(void* context, int64_t m0, int64_t m1);
  void* context;

  void operator()(int64_t m0, int64_t m1) const { call(context, m0, m1); }
};

struct MatmulKernels {
  int tile;               // rows of weights in a tile
  int float_rows;         // activation rows in a block, in mode f32
  int integer_rows;       // and in the other modes
  int small_batch_tile;           // rows of weights at a time where there are few rows of activations; 0 without few_product
  bool saturates;         // int8 products of codes above 6 bits do not fit
  bool integers;          // has the integer modes at all
  bool bf16_products;             // and mode bf16, as good as f32 where bfloat16 or e4m3 weights meet bfloat16
  bool winograd;          // tile_product takes less time with such layouts

  // Brings the block of n rows that begins at row m into place. columns is not padded.
  void (*pack)(const Activations& a, const void* const* rows, Type type, int64_t columns, int64_t m, int n);
  // y[m-m0][0..count) = products of rows [m0, m1) with weight rows from n0 on, at most a tile of them; y has rows of tile floats, all
  // of which done takes, a few at a time.
  void (*tile_product)(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y, const RowsCallback& done);
  // y[m][0..n1-n0) = products of all rows, of layout vector, with weight rows [n0, n1).
  void (*row_product)(const Weights& w, const Activations& x, int64_t n0, int64_t n1, float* y);
  // Whether row_product takes up to stream_rows rows of integers with these weights; null where it takes one row only.
  bool (*streams)(const Weights& w);
  int stream_rows;
  // As tile_product but for done, for few rows of activations, few_tile weight rows at a time; m0 is a multiple of integer_rows.
  void (*small_batch_product)(const Weights& w, const Activations& x, int64_t n0, int64_t m0, int64_t m1, float* y);
  // Element conversion.
  void (*widen)(Type type, const void* from, float* to, int64_t n);
  void (*narrow)(Type type, const float* from, void* to, int64_t n);
};

const MatmulKernels& matmul_kernels();

// One product of several: y [rows][stride] of the given type gets x W^T.
struct Product {
  Weights weights;
  const float* added = nullptr;  // [weights.rows], to each row before it is rounded
  void* y = nullptr;
  Type type = Type::f32;
};

// All products share x [rows][columns].
void multiply(const void* x, Type type, int64_t rows, int64_t columns, const Product* products, int count, bool fast);

// Rows picked by expert: row i of x, of which several may be the same row of the source, meets matrix expert[i].
// weights describes one matrix; matrix e begins at e times its bytes. y [rows][weights.rows].
struct Gathered {
  Weights weights;
  int64_t experts = 0;
  const void* const* x = nullptr;  // rows
  const uint32_t* expert = nullptr;
  void* const* y = nullptr;
  int64_t rows = 0;
  Type type = Type::f32;
};
void multiply_gathered(const Gathered& g, bool fast);

// The first, then the second, of the same experts. between(i) makes row i of the second's x out of row i of the first's y, on whatever
// thread has come to it: no thread waits until all of the first is done.
void multiply_gathered(const Gathered& first, const std::function<void(int64_t)>& between, const Gathered& second, bool fast);

}  // namespace ingot::cpu
