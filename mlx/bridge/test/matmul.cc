// Checks matrix products against float64 on all instruction sets of this processor: all formats, edge-case shapes, and
// the same bits for any number of threads and, with float32 activations, of rows. The argument N runs only every N-th
// case, for emulators. With the argument guard, weights, scales, activations and results lie next to guard pages, and
// the results must have the same bits as on the heap.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "cpu/isa.h"
#include "cpu/matmul/matmul.h"
#include "cpu/team/team.h"
#include "operands.h"

using namespace ingot::cpu;
using namespace operands;
using check::Exact;

namespace {

// The product of a row of x with a row of a matrix, and the largest error that a kernel may have: the rounding of
// float32 sums, the quantization of activations (1/65534 or 1/254 of a block's peak), and the rounding of the result.
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
    check::fail(name + ": " + std::to_string(got) + ", want " + std::to_string(want.value) + " within " +
                std::to_string(want.bound));
  }
}

// Checks two products that share their activations, the second with a bias.
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
  for (int threads = 1; threads <= most_threads(); threads++) {
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
      check::fail(name + ": different bits with " + std::to_string(threads) + " threads");
    }
    if (guarding) {
      check::note(bits.data(), bits.size());
    }
    if (threads > 1 || guarding) {
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
  for (int threads = 1; threads <= most_threads(); threads++) {
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
      check::fail(name + ": different bits with " + std::to_string(threads) + " threads");
    }
    if (guarding) {
      check::note(y);
      continue;
    }
    for (int64_t i = 0; threads == 1 && i < rows * outputs; i++) {
      compare(name, get(t, y.data(), size_t(i)), expect(x, from[size_t(i / outputs)], w, expert[size_t(i / outputs)],
                                                        i % outputs, 0, fast));
    }
  }
}

// Checks that two products in one run give the same bits as one after the other, and that a failure between them fails
// the run.
void twice(const Kind& k, Type t, bool fast, int64_t rows, int64_t columns, int64_t experts) {
  const int64_t unit = k.format == Format::plain ? 7 : k.group, middle = 2 * unit, outputs = 19;
  auto name = shape(k, t, fast, rows, columns, outputs) + " twice, experts: " + std::to_string(experts);
  Packed a(k, experts, middle, columns), b(k, experts, outputs, middle);
  Rows x(t, rows, columns);
  std::vector<uint32_t> expert;
  std::vector<const void*> from;
  for (int64_t i = 0; i < rows; i++) {
    expert.push_back(uint32_t(check::below(experts)));
    from.push_back(x.row(i));
  }
  std::vector<uint8_t> apart;
  for (int threads = 0; threads <= most_threads(); threads++) {  // 0: one after the other
    Team::instance().resize(std::max(1, threads));
    Exact<uint8_t> h(size_t(rows * middle) * size_of(t)), in(h.size()), y(size_t(rows * outputs) * size_of(t));
    std::vector<const void*> next;
    std::vector<void*> into, out;
    for (int64_t i = 0; i < rows; i++) {
      into.push_back(h.data() + size_t(i * middle) * size_of(t));
      next.push_back(in.data() + size_t(i * middle) * size_of(t));
      out.push_back(y.data() + size_t(i * outputs) * size_of(t));
    }
    Gathered one{.weights = a.form, .experts = experts, .x = from.data(), .expert = expert.data(), .y = into.data(),
                 .rows = rows, .type = t};
    Gathered two{.weights = b.form, .experts = experts, .x = next.data(), .expert = expert.data(), .y = out.data(),
                 .rows = rows, .type = t};
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
    if (guarding) {
      check::note(y);
    }
    if (std::vector<uint8_t>(y.data(), y.data() + y.size()) != apart) {
      check::fail(name + ": different bits with " + std::to_string(threads) + " threads");
    }
    try {
      multiply_gathered(one, [&](int64_t i) { i == rows / 2 ? throw std::runtime_error("between") : between(i); }, two,
                        fast);
      check::fail(name + ": the failure between the products was not reported");
    } catch (const std::runtime_error&) {
    }
  }
}

// Checks products with matrices that are not transposed. Each row must have the same bits with other rows and alone.
void across(const Kind& k, Type t, int64_t rows, int64_t inputs, int64_t columns, int64_t experts) {
  auto name = shape(k, t, false, rows, inputs, columns) + " across, experts: " + std::to_string(experts);
  Packed w(k, experts, inputs, columns);
  Rows x(t, rows, inputs);
  std::vector<uint32_t> expert;
  std::vector<const void*> from;
  for (int64_t i = 0; i < rows; i++) {
    expert.push_back(uint32_t(check::below(experts)));
    from.push_back(x.row(i));
  }
  const size_t row = size_t(columns) * size_of(t);
  Gathered g{.weights = w.form, .experts = experts, .x = from.data(), .expert = expert.data(), .rows = rows, .type = t};
  for (int threads = 1; threads <= most_threads(); threads++) {
    Team::instance().resize(threads);
    Exact<uint8_t> y(size_t(rows) * row), alone(row);
    std::vector<void*> to;
    for (int64_t i = 0; i < rows; i++) {
      to.push_back(y.data() + size_t(i) * row);
    }
    g.y = to.data();
    multiply_across(g);
    if (guarding) {
      check::note(y);
      continue;
    }
    for (int64_t i = 0; i < rows; i++) {
      void* one = alone.data();
      multiply_across({.weights = w.form, .experts = experts, .x = &from[size_t(i)], .expert = &expert[size_t(i)],
                       .y = &one, .rows = 1, .type = t});
      if (std::memcmp(one, to[size_t(i)], row) != 0) {
        check::fail(name + ": different bits with other rows, or with " + std::to_string(threads) + " threads");
      }
      for (int64_t n = 0; threads == 1 && n < columns; n++) {
        double sum = 0, size = 0;
        for (int64_t j = 0; j < inputs; j++) {
          const Parts& p = w.parts[size_t((expert[size_t(i)] * inputs + j) * columns + n)];
          sum += x.at(i, j) * (p.scaled + p.added);
          size += std::fabs(x.at(i, j)) * (std::fabs(p.scaled) + std::fabs(p.added));
        }
        const double round = t == Type::f32 ? 0 : t == Type::f16 ? 0x1p-11 : 0x1p-8;
        const double off = size * 0x1p-24 * (16 + double(inputs));
        compare(name, get(t, one, size_t(n)),
                {sum, off + round * (std::fabs(sum) + off) + (t == Type::f16 ? 0x1p-25 : 0)});
      }
    }
  }
}

// Checks that a row of float32 has the same bits in products of 2 to 19 rows: prefill in other chunks has the same
// results.
void chunks(const Kind& k, int64_t columns, int64_t outputs) {
  const int64_t most = 19;
  const auto name = shape(k, Type::f32, false, most, columns, outputs) + " in chunks";
  Packed w(k, 1, outputs, columns);
  Rows x(Type::f32, most, columns);
  Exact<float> all(size_t(most * outputs));
  for (int64_t rows = most; rows > 1; rows--) {
    Exact<float> y(size_t(rows * outputs));
    Product p{.weights = w.form, .y = y.data(), .type = Type::f32};
    multiply(x.bytes.data(), Type::f32, rows, columns, &p, 1, false);
    if (rows == most) {
      std::memcpy(all.data(), y.data(), y.size() * sizeof(float));
    } else if (std::memcmp(all.data(), y.data(), y.size() * sizeof(float)) != 0) {
      check::fail(name + ": different bits with " + std::to_string(rows) + " rows");
    }
  }
  if (guarding) {
    check::note(all);
  }
}

template <class Case>
void run(const std::string& name, Case&& one) {
  if (guarding) {
    check::in_all_places(name, one);
  } else {
    one();
  }
}

// drop_biases replaces biases only if all of them are the same multiple of their scales.
void symmetric(ScaleType t, int bits, int zero, int64_t rows, int64_t changed, bool want) {
  const Kind k = {"symmetric", Format::affine, bits, 32, t, {}};
  const int64_t columns = 1024, groups = columns / k.group;
  Packed w(k, 1, rows, columns);
  for (int64_t g = 0; g < rows * groups; g++) {
    const double scale = g < 3 ? 0 : (1 + double(g % 100)) / 1024;
    w.set(k, w.scales, size_t(g), scale);
    w.set(k, w.biases, size_t(g), -scale * (g == changed ? zero + 1 : zero));
  }
  Weights got = w.form;
  drop_biases(got);
  if ((got.biases == nullptr) != want || (want && got.zero != zero)) {
    check::fail("drop_biases of " + std::to_string(bits) + " bits, zero " + std::to_string(zero) + ", changed " +
                std::to_string(changed) + ": zero " + std::to_string(got.zero) +
                (got.biases ? ", biases" : ", no biases"));
  }
}

void symmetric() {
  for (ScaleType t : {ScaleType::f32, ScaleType::f16, ScaleType::bf16}) {
    symmetric(t, 4, 8, 3, -1, true);
    symmetric(t, 8, 128, 4096, -1, true);
    symmetric(t, 2, 1, 4096, -1, true);
    symmetric(t, 4, 8, 4096, 4096 * 32 - 1, false);
    symmetric(t, 4, 8, 4096, 5, false);
    symmetric(t, 4, -8, 3, -1, false);
  }
}

}  // namespace

int main(int argc, char** argv) {
  guarding = argc > 1 && std::string(argv[1]) == "guard";
  int64_t cases = 0, every = argc > 1 && !guarding ? std::max(1, std::atoi(argv[1])) : 1, number = 0;
  check::tell_faults();
  for (const char* name : {"portable", "avx2", "avx512", "avx512vbmi", "avx512bf16", "zen4", "neon"}) {
    try {
      set_isa(name);
    } catch (const std::invalid_argument& e) {
      std::printf("skipped: %s\n", e.what());
      continue;
    }
    if (guarding) {  // takes seconds: the portable kernels are slow and read single elements
      every = isa() == Isa::portable ? 41 : 7;
    }
    symmetric();
    for (const Kind& k : kKinds) {
      if (number++ % every == 0) {
        const int64_t columns = k.format == Format::plain ? 1101 : 1152;
        run(std::string(k.name) + " in chunks", [&] { chunks(k, columns, 37); });
        cases++;
      }
      for (bool fast : {false, true}) {
        for (int t = 0; t < 3; t++) {
          int variant = 0;
          for (int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 130}) {
            // Sizes that end within a step, a depth and a chunk of columns, and within eight rows and a tile of
            // weights.
            const int64_t columns[] = {1, 3, 5, 2, 16, 33}, outputs[] = {1, 7, 8, 9, 15, 17, 31, 33, 40};
            int64_t unit = k.format == Format::plain ? 13 : k.group;
            int64_t n = outputs[(variant + t) % 9], c = unit * columns[variant % 6];
            if (number++ % every != 0) {
              variant++;
              continue;
            }
            if (rows <= 4) {  // streams over several depths, which end within one
              const int64_t wide = (rows % 2 ? 4096 : 1024) / unit * unit + unit;
              run(shape(k, Type(t), fast, rows, wide, n), [&] { product(k, Type(t), fast, rows, wide, n); });
              cases++;
            }
            if (rows <= 4 && k.bits == 4) {  // whole depths
              run(shape(k, Type(t), fast, rows, 1024, n), [&] { product(k, Type(t), fast, rows, 1024, n); });
              cases++;
            }
            if ((variant + t) % 2 == 0) {
              run(shape(k, Type(t), fast, rows, c, n), [&] { product(k, Type(t), fast, rows, c, rows > 100 ? 9 : n); });
            } else {
              run(shape(k, Type(t), fast, rows, c, n), [&] {
                gathered(k, Type(t), fast, rows, c, n, rows > 17 ? 3 : 1 + variant % 7);
                twice(k, Type(t), fast, rows, c, 1 + variant % 5);
              });
            }
            cases++;
            variant++;
            if (!fast && rows <= 17 && takes_across({.format = k.format, .bits = k.bits})) {
              run(shape(k, Type(t), fast, rows, n, c) + " across", [&] { across(k, Type(t), rows, n, c, 1 + n % 3); });
              cases++;
            }
          }
          gathered(k, Type(t), fast, 0, k.format == Format::plain ? 7 : k.group, 3, 2);
        }
      }
    }
  }
  return check::exit_status("products", cases);
}
