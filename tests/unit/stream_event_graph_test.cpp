/// Stream, StreamRef, Event and Graph: ownership, order, and every refusal.

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

namespace {

std::string moved_stream(const std::string& operation = "Stream")
{
    return "tessera: empty_handle in " + operation +
           "\n  the stream was moved from or released\n  try: use the object that it was moved to";
}

std::string moved_event(const std::string& operation)
{
    return "tessera: empty_handle in " + operation +
           "\n  the event was moved from\n  try: use the object that it was moved to";
}

}  // namespace

TEST_CASE_FIXTURE(CleanRuntime, "a stream is created on the requested device and destroyed once")
{
    {
        const Stream here;
        const Stream there{Device(fake::t4)};
        CHECK(here.device() == fake::h200);
        CHECK(there.device() == fake::t4);
        CHECK(fake::live().streams == 2);
        CHECK(Device::current().ordinal() == fake::h200);
    }
    CHECK(fake::count("cudaStreamDestroy") == 2);
}

TEST_CASE_FIXTURE(CleanRuntime, "a moved stream has one owner, even if it is moved onto itself or another stream")
{
    Stream first;
    cudaStream_t const native = first.get();
    Stream second = std::move(first);
    CHECK(first.get() == nullptr);
    CHECK(first.device() == -1);
    CHECK(second.get() == native);
    Stream& same = second;
    second = std::move(same);
    CHECK(second.get() == native);
    Stream third;
    third = std::move(second);
    CHECK(third.get() == native);
    CHECK(fake::live().streams == 1);  // the previous stream of `third` is destroyed
}

TEST_CASE_FIXTURE(CleanRuntime, "a moved-from stream refuses every use, and the error names the place of the use")
{
    Stream stream;
    const Stream owner = std::move(stream);
    const Event event;
    DeviceBuffer<float> buffer(owner, 8);
    CHECK_ERROR(moved_stream("Stream::synchronize"), stream.synchronize());
    CHECK_ERROR(moved_stream("Stream::done"), stream.done());
    CHECK_ERROR(moved_stream("Stream::wait"), stream.wait(event));
    CHECK_ERROR(moved_stream("Stream::wait"), stream.wait(owner));
    CHECK_ERROR(moved_stream("Stream::priority"), stream.priority());
    CHECK_ERROR(moved_stream(), owner.wait(stream));
    CHECK_ERROR(moved_stream(), StreamRef(stream));
    CHECK_ERROR(moved_stream(), event.record(stream));
    CHECK_ERROR(moved_stream(), DeviceBuffer<float>(stream, 8));
    CHECK_ERROR(moved_stream(), buffer.fill(stream, 1.0F));
    CHECK_ERROR(moved_stream(), Graph::capture(stream, [](StreamRef) {}));
    CHECK_ERROR(moved_stream(), LaunchConfig(stream, {1}, {1}));
    CHECK_ERROR(moved_stream(), Gemm::launch(stream, buffer.matrix(2, 2), buffer.matrix(2, 2), buffer.matrix(2, 2)));
    CHECK_ERROR(moved_stream("Stream::release"), std::move(stream).release());
}

TEST_CASE_FIXTURE(CleanRuntime, "release gives up the stream and adopt takes it back")
{
    Stream stream;
    cudaStream_t const native = std::move(stream).release();
    CHECK(stream.get() == nullptr);
    CHECK(fake::live().streams == 1);
    const Stream again = Stream::adopt(native);
    CHECK(again.get() == native);
    CHECK(again.device() == fake::h200);
}

TEST_CASE_FIXTURE(CleanRuntime, "default streams and unknown streams cannot be adopted")
{
    const std::string refusal =
        "tessera: invalid_argument in Stream::adopt\n  a default stream has no owner and cannot "
        "be adopted\n  try: use Device::default_stream()";
    CHECK_ERROR(refusal, Stream::adopt(nullptr));
    CHECK_ERROR(refusal, Stream::adopt(cudaStreamLegacy));
    CHECK_ERROR(refusal, Stream::adopt(cudaStreamPerThread));
    Stream stream;
    cudaStream_t const native = std::move(stream).release();
    fake::fail_call("cudaStreamGetDevice", 1, cudaErrorInvalidResourceHandle);
    CHECK_ERROR(
        "tessera: cuda_failure in Stream::adopt\n  cudaStreamGetDevice returned cudaErrorInvalidResourceHandle "
        "(400): invalid resource handle",
        Stream::adopt(native));
    CHECK(cudaStreamDestroy(native) == cudaSuccess);  // the adoption failed: the caller still owns it
}

TEST_CASE_FIXTURE(CleanRuntime, "a StreamRef is made from other libraries' streams, too, and knows the device")
{
    struct ForeignRef {  // like cuda::stream_ref
        cudaStream_t stream;
        cudaStream_t get() const { return stream; }
    };
    const Stream stream{Device(fake::t4)};
    CHECK(StreamRef(stream.get()).device() == fake::t4);
    CHECK(StreamRef(ForeignRef{stream.get()}) == StreamRef(stream));
    CHECK(StreamRef(cudaStreamPerThread).device() == fake::h200);
    CHECK(Device(fake::t4).default_stream().device() == fake::t4);
    CHECK_FALSE(Device(fake::t4).default_stream() == Device(fake::h200).default_stream());
    fake::fail_call("cudaStreamGetDevice", 1, cudaErrorInvalidResourceHandle);
    CHECK_ERROR(
        "tessera: cuda_failure in StreamRef\n  cudaStreamGetDevice returned cudaErrorInvalidResourceHandle "
        "(400): invalid resource handle",
        StreamRef(stream.get()));
    fake::fail_call("cudaStreamCreateWithFlags", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in Stream\n  cudaStreamCreateWithFlags returned cudaErrorUnknown (999): unknown "
        "error",
        Stream());
}

TEST_CASE_FIXTURE(CleanRuntime, "errors of a StreamRef name StreamRef, not Stream")
{
    const Stream stream;
    const StreamRef ref = stream;
    const std::string unknown = " returned cudaErrorUnknown (999): unknown error";
    fake::fail_call("cudaStreamSynchronize", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in StreamRef::synchronize\n  cudaStreamSynchronize" + unknown,
                ref.synchronize());
    fake::fail_call("cudaStreamQuery", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in StreamRef::done\n  cudaStreamQuery" + unknown, ref.done());
    fake::fail_call("cudaEventRecord", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in StreamRef::wait\n  cudaEventRecord" + unknown, ref.wait(stream));
}

TEST_CASE_FIXTURE(CleanRuntime, "a stream has the requested priority, which must be in its device's range")
{
    const Device device(fake::h200);
    const Stream plain(device);
    const Stream urgent(device, StreamPriority::most_urgent(device));
    const Stream between(device, StreamPriority{-2});
    CHECK(plain.priority() == 0);
    CHECK(urgent.priority() == -5);
    CHECK(StreamRef(between).priority() == -2);
    CHECK(fake::count("cudaStreamCreateWithPriority") == 2);
    CHECK(StreamPriority::most_urgent(Device(fake::t4)).value == -1);
    CHECK_ERROR(
        "tessera: out_of_range in Stream\n  device 0 has no stream priority -6\n  try: 0 (the least urgent) to -5 (the "
        "most urgent)",
        Stream(device, StreamPriority{-6}));
    CHECK_ERROR(
        "tessera: out_of_range in Stream\n  device 0 has no stream priority 1\n  try: 0 (the least urgent) to -5 (the "
        "most urgent)",
        Stream(device, StreamPriority{1}));
}

TEST_CASE_FIXTURE(CleanRuntime,
                  "querying unfinished work is not an error and leaves none pending; synchronizing finishes it")
{
    const Stream stream;
    DeviceBuffer<float> buffer(stream, 16);
    buffer.fill(stream, 0.0F);
    const Event event;
    event.record(stream);
    fake::hold(stream.get());
    CHECK_FALSE(stream.done());
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    CHECK_FALSE(event.done());
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    event.synchronize();
    CHECK(event.done());
    CHECK(stream.done());
}

TEST_CASE_FIXTURE(CleanRuntime, "errors while waiting name the call")
{
    const Stream stream;
    const Event event;
    const std::string unknown = " returned cudaErrorUnknown (999): unknown error";
    fake::fail_call("cudaStreamSynchronize", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in Stream::synchronize\n  cudaStreamSynchronize" + unknown,
                stream.synchronize());
    fake::fail_call("cudaStreamQuery", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in Stream::done\n  cudaStreamQuery" + unknown, stream.done());
    fake::fail_call("cudaStreamWaitEvent", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in Stream::wait\n  cudaStreamWaitEvent" + unknown, stream.wait(event));
    fake::fail_call("cudaEventCreateWithFlags", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in Event\n  cudaEventCreateWithFlags" + unknown, Event());
    fake::fail_call("cudaEventRecord", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in Event::record\n  cudaEventRecord" + unknown, event.record(stream));
    fake::fail_call("cudaEventSynchronize", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in Event::synchronize\n  cudaEventSynchronize" + unknown, event.synchronize());
    fake::fail_call("cudaEventQuery", 1, cudaErrorUnknown);
    CHECK_ERROR("tessera: cuda_failure in Event::done\n  cudaEventQuery" + unknown, event.done());
}

TEST_CASE_FIXTURE(CleanRuntime, "waiting for another stream uses a temporary event on that stream's device")
{
    const Stream here;
    const Stream there{Device(fake::t4)};
    fake::clear_calls();
    here.wait(there);
    CHECK(fake::count("cudaStreamWaitEvent") == 1);
    CHECK(fake::count("cudaEventCreateWithFlags") == 1);
    CHECK(fake::count("cudaEventDestroy") == 1);
    for (const fake::Call& call : fake::calls()) {
        if (call.name == "cudaEventRecord") {
            CHECK(call.device == fake::t4);
        }
    }
}

TEST_CASE_FIXTURE(CleanRuntime, "an event is destroyed once, however it is moved, and refuses use after a move")
{
    const Stream stream;
    Event first(EventKind::timing);
    cudaEvent_t const native = first.get();
    Event second = std::move(first);
    Event& same = second;
    second = std::move(same);
    Event third;
    third = std::move(second);
    CHECK(third.get() == native);
    CHECK(third.kind() == EventKind::timing);
    CHECK(fake::live().events == 1);
    CHECK_ERROR(moved_event("Event::record"), first.record(stream));
    CHECK_ERROR(moved_event("Event::synchronize"), first.synchronize());
    CHECK_ERROR(moved_event("Event::done"), first.done());
    CHECK_ERROR(moved_event("Event::seconds_since"), first.seconds_since(third));
    CHECK_ERROR(moved_event("Event::seconds_since"), third.seconds_since(first));
    CHECK_ERROR(moved_event("Stream::wait"), stream.wait(first));
    CHECK_ERROR(moved_event("StreamRef::wait"), StreamRef(stream).wait(first));
}

TEST_CASE_FIXTURE(CleanRuntime,
                  "an event is recorded on streams of its own device only; streams of any device may wait for it")
{
    const Stream here;
    const Stream there{Device(fake::t4)};
    const Event event{Device(fake::t4)};
    CHECK(event.device() == fake::t4);
    CHECK_ERROR(
        "tessera: device_mismatch in Event::record\n  the event belongs to device 1, but the stream belongs to device "
        "0\n"
        "  try: use a stream and memory of one device, or copy the data to device 1 first",
        event.record(here));
    event.record(there);
    here.wait(event);
    event.record(Device(fake::t4).default_stream());
}

TEST_CASE_FIXTURE(CleanRuntime,
                  "the time between two events is in seconds, and events that cannot be timed are refused")
{
    const Stream stream;
    const Event start(EventKind::timing);
    const Event end(EventKind::timing);
    const Event clockless;
    const std::string head = "tessera: invalid_argument in Event::seconds_since\n  ";
    const std::string cure = "\n  try: record both events and call synchronize() on the later one first";
    CHECK_ERROR(head + "one of the events was never recorded" + cure, end.seconds_since(start));
    start.record(stream);
    DeviceBuffer<float> buffer(stream, 4);
    buffer.fill(stream, 0.0F);
    end.record(stream);
    fake::hold(stream.get());
    CHECK_ERROR(head + "one of the events has not happened yet" + cure, end.seconds_since(start));
    CHECK(cudaPeekAtLastError() == cudaSuccess);
    end.synchronize();
    CHECK(end.seconds_since(start) == 1e-3);  // by the fake's clock, recordings are a millisecond apart
    CHECK_ERROR(
        head + "an event of EventKind::ordering has no timestamp\n  try: create both events with EventKind::timing",
        end.seconds_since(clockless));
    const Event elsewhere(Device(fake::t4), EventKind::timing);
    CHECK_ERROR(
        "tessera: device_mismatch in Event::seconds_since\n  the start event belongs to device 1, but the end event "
        "belongs to device 0\n  try: use a stream and memory of one device, or copy the data to device 1 first",
        end.seconds_since(elsewhere));
    fake::fail_call("cudaEventElapsedTime", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in Event::seconds_since\n  cudaEventElapsedTime returned cudaErrorUnknown (999): "
        "unknown error",
        end.seconds_since(start));
}

TEST_CASE_FIXTURE(CleanRuntime, "a graph records without running and replays with one call")
{
    const Stream stream;
    const Stream side;
    DeviceBuffer<float> buffer(stream, 64);
    const Graph graph = Graph::capture(stream, [&](StreamRef captured) {
        CHECK(captured.is_capturing());
        buffer.fill(captured, 2.5F);
        side.wait(captured);
        buffer.fill(side, 0.0F);
        captured.wait(side);
    });
    CHECK_FALSE(StreamRef(stream).is_capturing());
    CHECK_FALSE(StreamRef(side).is_capturing());
    CHECK(graph.node_count() == 2);
    CHECK(graph.device() == fake::h200);
    fake::clear_calls();
    graph.launch(stream);
    CHECK(fake::count("cudaGraphLaunch") == 1);
    CHECK(fake::count("cudaLaunchKernelExC") == 0);
    CHECK(fake::live().graphs == 1);
    CHECK(fake::live().graph_executables == 1);
}

TEST_CASE_FIXTURE(CleanRuntime, "a graph is destroyed once, however it is moved, and refuses use after a move")
{
    const Stream stream;
    Graph first = Graph::capture(stream, [](StreamRef) {});
    cudaGraph_t const native = first.get();
    Graph second = std::move(first);
    Graph& same = second;
    second = std::move(same);
    Graph third = Graph::capture(stream, [](StreamRef) {});
    third = std::move(second);
    CHECK(third.get() == native);
    CHECK(third.node_count() == 0);
    CHECK(fake::live().graphs == 1);
    CHECK(fake::live().graph_executables == 1);
    CHECK_ERROR(
        "tessera: empty_handle in Graph::launch\n  the graph was moved from\n  try: use the object that it was "
        "moved to",
        first.launch(stream));
    CHECK_ERROR(
        "tessera: empty_handle in Graph::node_count\n  the graph was moved from\n  try: use the object that it "
        "was moved to",
        first.node_count());
    const Stream there{Device(fake::t4)};
    CHECK_ERROR(
        "tessera: device_mismatch in Graph::launch\n  the graph belongs to device 0, but the stream belongs to device "
        "1\n"
        "  try: use a stream and memory of one device, or copy the data to device 0 first",
        third.launch(there));
    fake::fail_call("cudaGraphLaunch", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in Graph::launch\n  cudaGraphLaunch returned cudaErrorUnknown (999): unknown error",
        third.launch(stream));
    fake::fail_call("cudaGraphGetNodes", 1, cudaErrorUnknown);
    CHECK_ERROR(
        "tessera: cuda_failure in Graph::node_count\n  cudaGraphGetNodes returned cudaErrorUnknown (999): unknown "
        "error",
        third.node_count());
}

TEST_CASE_FIXTURE(CleanRuntime, "what cannot be captured is refused")
{
    const Stream stream;
    const auto nothing = [](StreamRef) {};
    CHECK_ERROR(
        "tessera: capture_violation in Graph::capture\n  the legacy default stream cannot be captured\n"
        "  try: capture a Stream of your own",
        Graph::capture(Device(fake::h200).default_stream(), nothing));
    const Graph outer = Graph::capture(stream, [&](StreamRef captured) {
        CHECK_ERROR(
            "tessera: capture_violation in Graph::capture\n  the stream is already being captured\n  try: enqueue into "
            "the running capture, or capture another stream",
            Graph::capture(captured, nothing));
    });
    CHECK(outer.node_count() == 0);

    const std::string advice =
        "\n  try: the stream is being captured: move this call out of the captured work, and fork and join every other "
        "stream with events";
    DeviceBuffer<float> buffer(stream, 4);
    CHECK_ERROR(
        "tessera: capture_violation in Graph::capture\n  cudaStreamEndCapture returned "
        "cudaErrorStreamCaptureUnjoined (904): capturing stream has unjoined work" +
            advice,
        Graph::capture(stream, [&](StreamRef captured) {
            const Stream forgotten;
            forgotten.wait(captured);
            buffer.fill(forgotten, 1.0F);
        }));
    CHECK_ERROR(
        "tessera: capture_violation in StreamRef::synchronize\n  cudaStreamSynchronize returned "
        "cudaErrorStreamCaptureUnsupported (900): operation not permitted when stream is capturing" +
            advice,
        Graph::capture(stream, [&](StreamRef captured) { captured.synchronize(); }));
}

TEST_CASE_FIXTURE(CleanRuntime, "an exception in the captured work abandons the capture and passes through")
{
    const Stream stream;
    DeviceBuffer<float> buffer(stream, 4);
    struct Mine {};
    CHECK_THROWS_AS(static_cast<void>(Graph::capture(stream,
                                                     [&](StreamRef captured) {
                                                         buffer.fill(captured, 1.0F);
                                                         throw Mine{};
                                                     })),
                    Mine);
    CHECK_FALSE(StreamRef(stream).is_capturing());
    CHECK(Graph::capture(stream, [](StreamRef) {}).node_count() == 0);  // the stream is not capturing any more
}

TEST_CASE_FIXTURE(CleanRuntime, "a capture that CUDA fails leaves neither a graph nor a capturing stream")
{
    const Stream stream;
    const auto nothing = [](StreamRef) {};
    for (const std::string call : {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate"}) {
        fake::fail_call(call, 1, cudaErrorUnknown);
        CHECK_ERROR(
            "tessera: cuda_failure in Graph::capture\n  " + call + " returned cudaErrorUnknown (999): unknown error",
            Graph::capture(stream, nothing));
        CHECK_FALSE(StreamRef(stream).is_capturing());
        CHECK(fake::live().graphs == 0);
    }
}
