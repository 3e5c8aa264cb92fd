"""Records of many arrays as one argument for compiled functions: structrefs whose fields every function can read.

Functions that count no references (`compiling.leaf`) cannot read the fields of numba's own structrefs, although
nothing has to be counted: whoever passes a record keeps its arrays alive.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numba import types
from numba.core import cgutils, imputils
from numba.core.datamodel import default_manager, models
from numba.core.extending import infer_getattr, lower_getattr_generic, lower_setattr_generic
from numba.core.runtime.nrtdynmod import _meminfo_struct_type
from numba.core.typing.templates import AttributeTemplate

_DATA = 3
"""Position of the pointer to the data in what numba's runtime keeps about an allocation."""


class Reference(types.StructRef):  # type: ignore[misc]
    """The type of a reference to a record; each kind of record has its own subclass."""

    def preprocess_fields(self, fields: Any) -> Any:
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


Kind = TypeVar("Kind", bound=type[Reference])


def register(kind: Kind) -> Kind:
    """Make a subclass of `Reference` known to numba; used as a decorator, in place of `structref.register`."""
    default_manager.register(kind, models.StructRefModel)

    @infer_getattr
    class Fields(AttributeTemplate):  # type: ignore[misc]
        key = kind

        def generic_resolve(self, reference: Any, field: str) -> Any:
            return reference.field_dict.get(field)

    lower_getattr_generic(kind)(_read)
    lower_setattr_generic(kind)(_write)
    return kind


def _field(context: Any, builder: Any, reference: Any, value: Any, field: str) -> Any:
    """Where a field of the record behind a reference is kept."""
    meminfo = cgutils.create_struct_proxy(reference)(context, builder, value=value).meminfo
    allocation = builder.bitcast(meminfo, _meminfo_struct_type.as_pointer())
    data = _load(builder, cgutils.gep(builder, allocation, 0, _DATA))
    payload = context.data_model_manager[reference.get_data_type()]
    record = builder.bitcast(data, payload.get_value_type().as_pointer())
    return cgutils.gep_inbounds(builder, record, 0, payload.get_field_position(field))


def _load(builder: Any, pointer: Any) -> Any:
    """Load a value that never changes, so that the compiler does not load it again after every write to an array."""
    loaded = builder.load(pointer)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _read(context: Any, builder: Any, reference: Any, value: Any, field: str) -> Any:
    found = _load(builder, _field(context, builder, reference, value, field))
    return imputils.impl_ret_borrowed(context, builder, reference.field_dict[field], found)


def _write(context: Any, builder: Any, signature: Any, args: Any, field: str) -> None:
    """Set a field; only constructors do that, so there is no old value to release."""
    (reference, given), (value, new) = signature.args, args
    context.nrt.incref(builder, given, new)
    kept = context.cast(builder, new, given, reference.field_dict[field])
    builder.store(kept, _field(context, builder, reference, value, field))
