#define INGOT_PORTABLE
#define INGOT_ISA portable
#include "cpu/delta/gates.h"
#include "cpu/delta/kernels.h"
#include "cpu/delta/wkv.h"

namespace ingot::cpu {

extern const DeltaKernels delta_portable;
const DeltaKernels delta_portable = {
    .delta = {portable::delta<float>, portable::delta<f16>, portable::delta<bf16>},
    .column_delta = {portable::column_delta<float>, portable::column_delta<f16>, portable::column_delta<bf16>},
    .scan = {portable::scan<float>, portable::scan<f16>, portable::scan<bf16>},
    .channels = portable::channels,
    .softplus = portable::softplus,
    .unit_gates = {portable::unit_gates<float>, portable::unit_gates<f16>, portable::unit_gates<bf16>},
    .conv = {portable::conv<float>, portable::conv<f16>, portable::conv<bf16>},
    .wkv = {portable::wkv<float>, portable::wkv<f16>, portable::wkv<bf16>},
};

}  // namespace ingot::cpu
