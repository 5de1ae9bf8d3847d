"""Concrete functions: their arguments, their descriptions, and the graph that users traverse."""

from __future__ import annotations

from typing import Any

import pytest

from adjit import tf
from adjit.ir.errors import UnsupportedError


@tf.function
def scaled(a, b=2, *, c=None):
    return a * b


@pytest.fixture
def concrete() -> Any:
    return scaled.get_concrete_function(tf.TensorSpec([None], tf.float32))


def test_any_size_behind_one_signature(concrete: Any) -> None:
    assert concrete(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
    assert concrete(a=tf.constant([1.0, 2.0, 3.0])).numpy().tolist() == [2.0, 4.0, 6.0]
    assert concrete(tf.constant([1.0]), 2).numpy().tolist() == [2.0]
    assert concrete.inference_fn(tf.constant([1.0])).numpy().tolist() == [2.0]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing a required argument: 'a'"),
        (([1.0],), {}, "does not have the structure"),
        ((tf.constant([[1.0]]),), {}, "Can not cast"),
        ((tf.constant([1.0]), 3), {}, "'b' is 2 in this trace, not 3"),
        ((tf.constant([1.0]),), {"b": 3}, "'b' is 2 in this trace, not 3"),
        ((tf.constant([1.0]),), {"d": 3}, "unexpected keyword argument 'd'"),
        ((tf.constant([1.0]), tf.constant(3.0)), {}, "'b' is 2 in this trace"),
    ],
)
def test_arguments_that_do_not_fit(concrete: Any, args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        concrete(*args, **kwargs)
    assert "Binding inputs to tf.function failed" in str(caught.value)


def test_another_dtype_is_an_invalid_argument(concrete: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a float32 tensor but is a int32 tensor"):
        concrete(tf.constant([1]))


TEXT = """Input Parameters:
  a (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(2,), dtype=tf.float32, name=None)
  b (POSITIONAL_OR_KEYWORD): List[Literal[1], Literal[-1]]
Output Type:
  Dict[['s', TensorSpec(shape=(2,), dtype=tf.float32, name=None)], ['t', Tuple[TensorSpec(shape=(), dtype=tf.int32, name=None)]]]
Captures:
  None"""


def test_texts() -> None:
    @tf.function
    def f(a, b):
        return {"s": a * b[0], "t": (tf.constant(3),)}

    one = f.get_concrete_function(tf.constant([1.0, 2.0]), [1, -1])
    assert one.pretty_printed_signature() == TEXT
    assert str(one) == f"ConcreteFunction {TEXT}"
    assert f.pretty_printed_concrete_signatures() == TEXT
    spec = "TensorSpec(shape=(2,), dtype=tf.float32, name=None)"
    assert str(one.function_type).startswith(f"(a: {spec}, b: List[Literal[1], Literal[-1]]) -> Dict[")
    assert one.structured_input_signature == ((tf.TensorSpec([2], tf.float32, name="a"), [1, -1]), {})
    assert one.structured_outputs["t"] == (tf.TensorSpec([], tf.int32),)


def test_structures_and_flat_tensors() -> None:
    @tf.function
    def f(p, q):
        return p["x"] + q[0] * p["k"]

    one = f.get_concrete_function({"x": tf.constant(1.0), "k": 3}, [tf.constant(2.0)])
    assert float(one({"x": tf.constant(1.0), "k": 3}, [tf.constant(2.0)])) == 7.0
    assert float(one(tf.constant(1.0), tf.constant(2.0))) == 7.0
    with pytest.raises(TypeError, match="'p' is 3 in this trace, not 4"):
        one({"x": tf.constant(1.0), "k": 4}, [tf.constant(2.0)])


def test_objects_are_part_of_the_trace() -> None:
    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(2.0)

    model = Model()
    one = tf.function(lambda m, x: m.weight * x).get_concrete_function(model, tf.constant(1.0))
    assert float(one(tf.constant(10.0))) == 20.0
    assert one.variables == (model.weight,)
    assert one.captured_inputs == [model.weight]
    assert one.trainable_variables == (model.weight,)


def test_methods_and_variables() -> None:
    class Scale(tf.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        @tf.function
        def call(self, x, v):
            return x * self.factor + v

    two, v = Scale(2.0), tf.Variable(1.0)
    one = two.call.get_concrete_function(tf.constant(1.0), v)
    assert float(one(tf.constant(3.0), v)) == 7.0
    assert "v (POSITIONAL_OR_KEYWORD): VariableSpec(shape=(), dtype=tf.float32, trainable=True, alias_id=0)" in str(one)
    assert float(two.call(tf.constant(3.0), v)) == 7.0
    assert two.call.experimental_get_tracing_count() == 1


def test_the_graph() -> None:
    @tf.function
    def double(a):
        return a + a

    definition = double.get_concrete_function(tf.constant(1.0)).graph.as_graph_def()
    assert [(n.op, n.input) for n in definition.node] == [("Placeholder", []), ("add", ["a", "a"]), ("Identity", ["add"])]
    assert str(definition).startswith("func @double(%a: f32[])")


def test_objects_with_equal_trace_types_share_a_trace() -> None:
    class Kind(tf.types.experimental.TraceType):
        def __init__(self, owner: object) -> None:
            self.cls = type(owner)

        def is_subtype_of(self, other: Any) -> bool:
            return self == other

        def most_specific_common_supertype(self, others: Any) -> Any:
            return self

        def placeholder_value(self, placeholder_context: Any = None) -> Any:
            return None

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Kind) and self.cls is other.cls

        def __hash__(self) -> int:
            return hash(self.cls)

    class Fruit:
        def __tf_tracing_type__(self, context: Any) -> Kind:
            return Kind(self)

    class Apple(Fruit):
        flavor = tf.constant([1, 2])

    class Mango(Fruit):
        flavor = tf.constant([3, 4])

    @tf.function
    def mixed(a, b):
        return a.flavor + b.flavor

    for _ in range(3):
        assert mixed(Apple(), Mango()).numpy().tolist() == [4, 6]
    assert mixed.experimental_get_tracing_count() == 1
    assert mixed(Mango(), Mango()).numpy().tolist() == [6, 8]
    assert mixed.experimental_get_tracing_count() == 2


def test_inputs_and_outputs_of_a_concrete_function() -> None:
    v = tf.Variable([1.0, 2.0], name="v")

    @tf.function
    def f(x, n):
        return {"y": x * v, "n": n + 1}

    concrete = f.get_concrete_function(tf.TensorSpec([2]), tf.TensorSpec([], tf.int32))
    assert [(i.name, i.shape, i.dtype) for i in concrete.inputs] == [
        ("x:0", (2,), tf.float32),
        ("n:0", (), tf.int32),
        ("v:0", (2,), tf.float32),
    ]
    assert [(o.shape, o.dtype) for o in concrete.outputs] == [((2,), tf.float32), ((), tf.int32)]
    assert concrete.output_shapes == {"y": (2,), "n": ()}
    assert concrete.output_dtypes == {"y": tf.float32, "n": tf.int32}


def test_gradients_by_a_constant_are_refused() -> None:
    @tf.function
    def f():
        x = tf.constant(10.0)
        return tf.gradients(x * 2.0, x)

    with pytest.raises(UnsupportedError, match=r"tf\.gradients: .* is a constant(.|\n)*return tf.gradients"):
        f()


def test_input_signatures_name_all_required_parameters() -> None:
    decorate = tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    with pytest.raises(TypeError, match=r"input_signature missing type constraint for b, c: TensorSpecs are still required"):
        decorate(lambda a, b, c: a)
    assert decorate(lambda a, b=4, **more: a + b)(tf.constant(1)).numpy() == 5

    class Model(tf.Module):
        @decorate
        def f(self, a, b=2):
            return a * b

    assert Model().f(tf.constant(3)).numpy() == 6


def test_input_signatures_leave_parameters_by_keyword_alone() -> None:
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def f(a, *, b=3):
        return a * b

    assert f(tf.constant(2)).numpy() == 6
    assert f(tf.constant(2), b=5).numpy() == 10


@pytest.mark.parametrize("signed", [False, True])
def test_open_sizes_are_none(signed):
    spec = [tf.TensorSpec([None, 2]), tf.TensorSpec([2, None])]
    f = tf.function(lambda x, y: (x @ y, tf.reduce_sum(x)), input_signature=spec if signed else None)
    c = f.get_concrete_function(*(() if signed else spec))
    assert [i.shape.as_list() for i in c.inputs] == [[None, 2], [2, None]]
    assert [o.shape.as_list() for o in c.outputs] == [[None, None], []]
    for rows in (3, 1, 4):
        product, total = c(tf.ones([rows, 2]), tf.ones([2, 5]))
        assert (product.numpy().tolist(), float(total)) == ([[2.0] * 5] * rows, 2.0 * rows)


def test_open_sizes_that_must_agree():
    f = tf.function(lambda x, y: x - y)
    c = f.get_concrete_function(tf.TensorSpec([None]), tf.TensorSpec([None]))
    assert c.output_shapes.as_list() == [None]
    assert c(tf.ones([3]), tf.ones([3])).numpy().tolist() == [0.0] * 3
