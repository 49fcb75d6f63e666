// Checks products against float64, on the instruction sets that this processor has: all formats, edge-sized shapes, and
// the same bits for any number of threads. An argument N leaves out all but one case in N, for emulators.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "../src/cpu.h"
#include "../src/cpu_matmul.h"
#include "../src/cpu_team.h"
#include "check.h"

using namespace ingot::cpu;
using check::Exact;

namespace {

struct Kind {
  const char* name;
  Format format;
  int bits, group;
  ScaleType scale;
  Type type;  // of plain elements
};

const Kind kKinds[] = {
    {"affine2x32", Format::affine, 2, 32, ScaleType::bf16, {}},   {"affine2x64", Format::affine, 2, 64, ScaleType::f16, {}},
    {"affine3x32", Format::affine, 3, 32, ScaleType::f32, {}},    {"affine3x128", Format::affine, 3, 128, ScaleType::bf16, {}},
    {"affine4x32", Format::affine, 4, 32, ScaleType::f16, {}},    {"affine4x64", Format::affine, 4, 64, ScaleType::bf16, {}},
    {"affine4x128", Format::affine, 4, 128, ScaleType::f32, {}},  {"affine5x32", Format::affine, 5, 32, ScaleType::bf16, {}},
    {"affine5x64", Format::affine, 5, 64, ScaleType::f32, {}},    {"affine6x32", Format::affine, 6, 32, ScaleType::bf16, {}},
    {"affine6x128", Format::affine, 6, 128, ScaleType::f16, {}},  {"affine8x32", Format::affine, 8, 32, ScaleType::bf16, {}},
    {"affine8x64", Format::affine, 8, 64, ScaleType::bf16, {}},   {"affine8x128", Format::affine, 8, 128, ScaleType::f32, {}},
    {"mxfp4", Format::fp4, 4, 32, ScaleType::e8m0, {}},           {"nvfp4", Format::fp4, 4, 16, ScaleType::e4m3, {}},
    {"mxfp8", Format::fp8, 8, 32, ScaleType::e8m0, {}},           {"f32", Format::plain, 32, 1, {}, Type::f32},
    {"f16", Format::plain, 16, 1, {}, Type::f16},                 {"bf16", Format::plain, 16, 1, {}, Type::bf16},
};

const char* kTypes[] = {"f32", "f16", "bf16"};

size_t size_of(Type t) { return t == Type::f32 ? 4 : 2; }

double get(Type t, const void* p, size_t i) {
  switch (t) {
    case Type::f32:
      return check::number(static_cast<const float*>(p) + i);
    case Type::f16:
      return check::number(static_cast<const f16*>(p) + i);
    default:
      return check::number(static_cast<const bf16*>(p) + i);
  }
}

void put(Type t, void* p, size_t i, double v) {
  switch (t) {
    case Type::f32:
      return check::put(static_cast<float*>(p) + i, v);
    case Type::f16:
      return check::put(static_cast<f16*>(p) + i, v);
    default:
      return check::put(static_cast<bf16*>(p) + i, v);
  }
}

double e4m3(uint8_t c) {
  int exponent = c >> 3 & 15, fraction = c & 7;
  double v = exponent ? std::ldexp(8 + fraction, exponent - 10) : std::ldexp(fraction, -9);
  return c & 0x80 ? -v : v;
}

// What a format's code stands for, in two parts that kernels may add up apart.
struct Parts {
  double scaled, added;
};

// A stack of matrices with random codes and what they stand for.
struct Packed {
  Weights form;
  Exact<uint8_t> codes, scales, biases;
  std::vector<Parts> parts;  // [matrix][row][column]

  Packed(const Kind& k, int64_t count, int64_t rows, int64_t columns)
      : codes(size_t(count * rows * columns * k.bits / 8)),
        scales(size_t(k.format == Format::plain ? 0 : count * rows * columns / k.group) * scale_bytes(k)),
        biases(k.format == Format::affine ? scales.size() : 0) {
    form = {.codes = codes.data(), .scales = scales.data(), .biases = k.format == Format::affine ? biases.data() : nullptr,
            .rows = rows, .columns = columns, .format = k.format, .bits = k.bits, .group = k.group, .scale_type = k.scale,
            .type = k.type};
    for (size_t i = 0; i < codes.size(); i++) {
      codes[i] = uint8_t(check::random()());
    }
    for (int64_t i = 0; i < count * rows * columns; i++) {
      if (k.format == Format::plain) {
        put(k.type, codes.data(), size_t(i), check::normal() * 0.02);
        parts.push_back({get(k.type, codes.data(), size_t(i)), 0});
        continue;
      }
      if (k.format == Format::fp8 && (codes[size_t(i)] & 0x7f) == 0x7f) {
        codes[size_t(i)] &= 0x80;
      }
      auto g = size_t(i / k.group);
      if (i % k.group == 0) {
        set_scale(k, g);
      }
      double s = scale(k, scales, g);
      int64_t bit = i % columns * k.bits;
      const uint8_t* row = codes.data() + i / columns * form.row_bytes();
      uint32_t code = 0;
      for (int b = 0; b < k.bits; b++) {
        code |= uint32_t(row[(bit + b) / 8] >> (bit + b) % 8 & 1) << b;
      }
      const double fp4[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
      switch (k.format) {
        case Format::affine:
          parts.push_back({code * s, scale(k, biases, g)});
          break;
        case Format::fp4: {
          double v = (code & 8 ? -1 : 1) * fp4[code & 7];
          parts.push_back({(v + 6) * s, -6 * s});
          break;
        }
        default:
          parts.push_back({e4m3(uint8_t(code)) * s, 0});
      }
    }
  }

 private:
  static size_t scale_bytes(const Kind& k) {
    return k.scale == ScaleType::f32 ? 4 : k.scale == ScaleType::f16 || k.scale == ScaleType::bf16 ? 2 : 1;
  }
  static Type type(const Kind& k) {
    return k.scale == ScaleType::f32 ? Type::f32 : k.scale == ScaleType::f16 ? Type::f16 : Type::bf16;
  }
  static double scale(const Kind& k, const Exact<uint8_t>& from, size_t g) {
    return k.scale == ScaleType::e8m0   ? std::ldexp(1, from[g] - 127)
           : k.scale == ScaleType::e4m3 ? e4m3(from[g])
                                        : get(type(k), from.data(), g);
  }
  void set_scale(const Kind& k, size_t g) {
    if (k.scale == ScaleType::e8m0) {
      scales[g] = uint8_t(118 + check::below(6));
    } else if (k.scale == ScaleType::e4m3) {
      scales[g] = uint8_t(check::below(0x40));
    } else {
      double s = 0.05 * (0.1 + std::fabs(check::normal())) / (1 << k.bits);
      put(type(k), scales.data(), g, check::below(20) == 0 ? 0 : s);
      put(type(k), biases.data(), g, -s * (1 << (k.bits - 1)) * (1 + 0.1 * check::normal()));
    }
  }
};

struct Rows {
  Type type;
  int64_t columns;
  Exact<uint8_t> bytes;

  Rows(Type t, int64_t rows, int64_t n) : type(t), columns(n), bytes(size_t(rows * n) * size_of(t)) {
    for (int64_t i = 0; i < rows * n; i++) {
      put(t, bytes.data(), size_t(i), check::normal() * (check::below(300) == 0 ? 40 : 1));
    }
  }
  double at(int64_t r, int64_t k) const { return get(type, bytes.data(), size_t(r * columns + k)); }
  const void* row(int64_t r) const { return bytes.data() + size_t(r * columns) * size_of(type); }
};

// The product of a row of x with a row of a matrix, and how far a kernel may be off: what float32 loses in sums, what
// integers lose of activations (a block's largest over 65534 or 254), what the result's type loses.
struct Expected {
  double value, bound;
};

Expected expect(const Rows& x, int64_t r, const Packed& w, int64_t matrix, int64_t n, double added, bool fast) {
  const Weights& f = w.form;
  double sum = added, size = std::fabs(added), lost = 0;
  bool codes = f.format == Format::affine || f.format == Format::fp4;
  int block = codes ? std::min(f.group, kStep) : kStep;
  double step = !codes ? 0 : fast ? 1 / 254.0 : x.type == Type::f32 ? 0 : 1 / 65534.0;
  const Parts* p = w.parts.data() + (matrix * f.rows + n) * f.columns;
  for (int64_t k0 = 0; k0 < f.columns; k0 += block) {
    double peak = 0, scaled = 0;
    for (int64_t k = k0; k < std::min(k0 + block, f.columns); k++) {
      double v = x.at(r, k);
      sum += v * (p[k].scaled + p[k].added);
      size += std::fabs(v) * (std::fabs(p[k].scaled) + std::fabs(p[k].added));
      peak = std::max(peak, std::fabs(v));
      scaled += std::fabs(p[k].scaled);
    }
    lost += 1.01 * step * peak * scaled;
  }
  double round = x.type == Type::f32 ? 0 : x.type == Type::f16 ? 0x1p-11 : 0x1p-8;
  double off = lost + size * 0x1p-24 * (16 + double(f.columns) / 4);
  return {sum, off + round * (std::fabs(sum) + off) + (x.type == Type::f16 ? 0x1p-25 : 0)};
}

std::string shape(const Kind& k, Type t, bool fast, int64_t rows, int64_t columns, int64_t outputs) {
  return std::string(name_of(isa())) + " " + k.name + " " + kTypes[int(t)] + (fast ? " fast " : " exact ") +
         std::to_string(rows) + "x" + std::to_string(columns) + " to " + std::to_string(outputs);
}

void compare(const std::string& name, double got, Expected want) {
  if (!(std::fabs(got - want.value) <= want.bound)) {
    check::fail(name + ": " + std::to_string(got) + ", want " + std::to_string(want.value) + " within " + std::to_string(want.bound));
  }
}

// Two products that share their activations, the second with something added.
void product(const Kind& k, Type t, bool fast, int64_t rows, int64_t columns, int64_t outputs) {
  auto name = shape(k, t, fast, rows, columns, outputs);
  int64_t more = 1 + outputs / 2;
  Packed a(k, 1, outputs, columns), b(k, 1, more, columns);
  Rows x(t, rows, columns);
  Exact<float> added(static_cast<size_t>(more));
  for (int64_t n = 0; n < more; n++) {
    added[size_t(n)] = float(check::normal());
  }
  std::vector<uint8_t> first;
  for (int threads = 1; threads <= 3; threads++) {
    Team::instance().resize(threads);
    Exact<uint8_t> y(size_t(rows * outputs) * size_of(t)), z(size_t(rows * more) * size_of(t));
    Product p[] = {{.weights = a.form, .y = y.data(), .type = t},
                   {.weights = b.form, .added = added.data(), .y = z.data(), .type = t}};
    multiply(x.bytes.data(), t, rows, columns, p, 2, fast);
    std::vector<uint8_t> bits(y.data(), y.data() + y.size());
    bits.insert(bits.end(), z.data(), z.data() + z.size());
    if (threads == 1) {
      first = bits;
    } else if (bits != first) {
      check::fail(name + ": other bits with " + std::to_string(threads) + " threads");
    }
    if (threads > 1) {
      continue;
    }
    for (int64_t m = 0; m < rows; m++) {
      for (int64_t n = 0; n < outputs; n++) {
        compare(name, get(t, y.data(), size_t(m * outputs + n)), expect(x, m, a, 0, n, 0, fast));
      }
      for (int64_t n = 0; n < more; n++) {
        compare(name + " added", get(t, z.data(), size_t(m * more + n)), expect(x, m, b, 0, n, added[size_t(n)], fast));
      }
    }
  }
}

void gathered(const Kind& k, Type t, bool fast, int64_t rows, int64_t columns, int64_t outputs, int64_t experts) {
  auto name = shape(k, t, fast, rows, columns, outputs) + " of " + std::to_string(experts);
  Packed w(k, experts, outputs, columns);
  Rows x(t, 5, columns);
  std::vector<int64_t> from;
  std::vector<const void*> at;
  std::vector<uint32_t> expert;
  for (int64_t i = 0; i < rows; i++) {
    from.push_back(check::below(5));
    at.push_back(x.row(from.back()));
    expert.push_back(uint32_t(check::below(experts)));
  }
  std::vector<uint8_t> first;
  for (int threads = 1; threads <= 3; threads++) {
    Team::instance().resize(threads);
    Exact<uint8_t> y(size_t(rows * outputs) * size_of(t));
    std::vector<void*> to;
    for (int64_t i = 0; i < rows; i++) {
      to.push_back(y.data() + size_t(i * outputs) * size_of(t));
    }
    multiply_gathered({.weights = w.form, .experts = experts, .x = at.data(), .expert = expert.data(), .y = to.data(),
                       .rows = rows, .type = t}, fast);
    std::vector<uint8_t> bits(y.data(), y.data() + y.size());
    if (threads == 1) {
      first = bits;
    } else if (bits != first) {
      check::fail(name + ": other bits with " + std::to_string(threads) + " threads");
    }
    for (int64_t i = 0; threads == 1 && i < rows * outputs; i++) {
      compare(name, get(t, y.data(), size_t(i)), expect(x, from[size_t(i / outputs)], w, expert[size_t(i / outputs)], i % outputs, 0, fast));
    }
  }
}

// Two products in one run give what they give one after the other, and what fails between them fails both.
void twice(const Kind& k, Type t, bool fast, int64_t rows, int64_t columns, int64_t experts) {
  const int64_t unit = k.format == Format::plain ? 7 : k.group, middle = 2 * unit, outputs = 19;
  auto name = shape(k, t, fast, rows, columns, outputs) + " twice, of " + std::to_string(experts);
  Packed a(k, experts, middle, columns), b(k, experts, outputs, middle);
  Rows x(t, rows, columns);
  std::vector<uint32_t> expert;
  std::vector<const void*> from;
  for (int64_t i = 0; i < rows; i++) {
    expert.push_back(uint32_t(check::below(experts)));
    from.push_back(x.row(i));
  }
  std::vector<uint8_t> apart;
  for (int threads = 0; threads <= 3; threads++) {  // 0: one after the other
    Team::instance().resize(std::max(1, threads));
    Exact<uint8_t> h(size_t(rows * middle) * size_of(t)), in(h.size()), y(size_t(rows * outputs) * size_of(t));
    std::vector<const void*> next;
    std::vector<void*> into, out;
    for (int64_t i = 0; i < rows; i++) {
      into.push_back(h.data() + size_t(i * middle) * size_of(t));
      next.push_back(in.data() + size_t(i * middle) * size_of(t));
      out.push_back(y.data() + size_t(i * outputs) * size_of(t));
    }
    Gathered one{.weights = a.form, .experts = experts, .x = from.data(), .expert = expert.data(), .y = into.data(), .rows = rows, .type = t};
    Gathered two{.weights = b.form, .experts = experts, .x = next.data(), .expert = expert.data(), .y = out.data(), .rows = rows, .type = t};
    auto between = [&](int64_t i) {
      const size_t row = size_t(middle) * size_of(t);
      std::memcpy(in.data() + size_t(i) * row, h.data() + size_t(i) * row, row);
    };
    if (threads == 0) {
      multiply_gathered(one, fast);
      for (int64_t i = 0; i < rows; i++) {
        between(i);
      }
      multiply_gathered(two, fast);
      apart.assign(y.data(), y.data() + y.size());
      continue;
    }
    multiply_gathered(one, between, two, fast);
    if (std::vector<uint8_t>(y.data(), y.data() + y.size()) != apart) {
      check::fail(name + ": other bits with " + std::to_string(threads) + " threads");
    }
    try {
      multiply_gathered(one, [&](int64_t i) { i == rows / 2 ? throw std::runtime_error("between") : between(i); }, two, fast);
      check::fail(name + ": what failed between them was not told");
    } catch (const std::runtime_error&) {
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int64_t cases = 0, every = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1, number = 0;
  for (const char* name : {"portable", "avx2", "avx512", "avx512bf16", "zen4", "neon", "dotprod"}) {
    try {
      set_isa(name);
    } catch (const std::invalid_argument& e) {
      std::printf("left out: %s\n", e.what());
      continue;
    }
    for (const Kind& k : kKinds) {
      for (bool fast : {false, true}) {
        for (int t = 0; t < 3; t++) {
          int turn = 0;
          for (int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 130}) {
            // Ends within a step, a depth, a stretch of columns; within eight rows and a tile of weights.
            const int64_t columns[] = {1, 3, 5, 2, 16, 33}, outputs[] = {1, 7, 8, 9, 15, 17, 31, 33, 40};
            int64_t unit = k.format == Format::plain ? 13 : k.group;
            int64_t n = outputs[(turn + t) % 9], c = unit * columns[turn % 6];
            if (number++ % every != 0) {
              turn++;
              continue;
            }
            if (rows == 1 || rows == 3) {
              product(k, Type(t), fast, rows, 4096 / unit * unit + unit, n);
              cases++;
            }
            if (rows <= 4 && k.bits == 4) {  // whole stretches, which are streamed
              product(k, Type(t), fast, rows, 4608, n);
              cases++;
            }
            if ((turn + t) % 2 == 0) {
              product(k, Type(t), fast, rows, c, rows > 100 ? 9 : n);
            } else {
              gathered(k, Type(t), fast, rows, c, n, rows > 17 ? 3 : 1 + turn % 7);
              twice(k, Type(t), fast, rows, c, 1 + turn % 5);
            }
            cases++;
            turn++;
          }
          gathered(k, Type(t), fast, 0, k.format == Format::plain ? 7 : k.group, 3, 2);
        }
      }
    }
  }
  return check::verdict("products", cases);
}
