//! The part that all wrapping stores share: every request of an `ObjectStore` goes past two points, before it reaches
//! the wrapped store and before its answer returns.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    GetResult, GetResultPayload, MultipartUpload, ObjectStore, PutPayload, PutResult, Result, UploadPart,
};

/// What is asked of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Put,
    /// The beginning, a part, the completion or the end of a multipart upload.
    Multipart,
    Get,
    List,
    /// The delete of one object.
    Delete,
    Copy,
    Rename,
}

impl Request {
    pub(super) fn is_write(self) -> bool {
        match self {
            Self::Put | Self::Multipart | Self::Delete | Self::Copy | Self::Rename => true,
            Self::Get | Self::List => false,
        }
    }
}

/// A wrapping store. `impl_object_store!` makes it an `ObjectStore`. Clones share everything.
pub(super) trait Intercept: Clone + fmt::Debug + Send + Sync + 'static {
    /// The wrapped store.
    fn store(&self) -> &Arc<dyn ObjectStore>;

    /// Awaited before `request` reaches the wrapped store.
    fn before(&self, request: Request) -> impl Future<Output = ()> + Send;

    /// Awaited before anything of an answer returns.
    fn after(&self) -> impl Future<Output = ()> + Send;
}

/// Makes an `Intercept` an `ObjectStore`.
macro_rules! impl_object_store {
    ($wrapper:ident) => {
        impl std::fmt::Display for $wrapper {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($wrapper), "({})"), self.store())
            }
        }

        #[async_trait::async_trait]
        #[deny(clippy::missing_trait_methods)]
        impl object_store::ObjectStore for $wrapper {
            async fn put_opts(
                &self,
                location: &object_store::path::Path,
                payload: object_store::PutPayload,
                options: object_store::PutOptions,
            ) -> object_store::Result<object_store::PutResult> {
                let put = self.store().put_opts(location, payload, options);
                $crate::store::intercept::call(self, Request::Put, put).await
            }

            async fn put_multipart_opts(
                &self,
                location: &object_store::path::Path,
                options: object_store::PutMultipartOptions,
            ) -> object_store::Result<Box<dyn object_store::MultipartUpload>> {
                let upload = self.store().put_multipart_opts(location, options);
                let upload = $crate::store::intercept::call(self, Request::Multipart, upload).await?;
                Ok($crate::store::intercept::upload(self, upload))
            }

            async fn get_opts(
                &self,
                location: &object_store::path::Path,
                options: object_store::GetOptions,
            ) -> object_store::Result<object_store::GetResult> {
                let found = self.store().get_opts(location, options);
                let found = $crate::store::intercept::call(self, Request::Get, found).await?;
                Ok($crate::store::intercept::found(self, found))
            }

            async fn get_ranges(
                &self,
                location: &object_store::path::Path,
                ranges: &[std::ops::Range<u64>],
            ) -> object_store::Result<Vec<bytes::Bytes>> {
                let found = self.store().get_ranges(location, ranges);
                $crate::store::intercept::call(self, Request::Get, found).await
            }

            fn delete_stream(
                &self,
                locations: futures::stream::BoxStream<'static, object_store::Result<object_store::path::Path>>,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::path::Path>> {
                $crate::store::intercept::delete(self, locations)
            }

            fn list(
                &self,
                prefix: Option<&object_store::path::Path>,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>> {
                $crate::store::intercept::items(self, Some(Request::List), self.store().list(prefix))
            }

            fn list_with_offset(
                &self,
                prefix: Option<&object_store::path::Path>,
                offset: &object_store::path::Path,
            ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>> {
                let listed = self.store().list_with_offset(prefix, offset);
                $crate::store::intercept::items(self, Some(Request::List), listed)
            }

            async fn list_with_delimiter(
                &self,
                prefix: Option<&object_store::path::Path>,
            ) -> object_store::Result<object_store::ListResult> {
                let listed = self.store().list_with_delimiter(prefix);
                $crate::store::intercept::call(self, Request::List, listed).await
            }

            async fn copy_opts(
                &self,
                from: &object_store::path::Path,
                to: &object_store::path::Path,
                options: object_store::CopyOptions,
            ) -> object_store::Result<()> {
                let copied = self.store().copy_opts(from, to, options);
                $crate::store::intercept::call(self, Request::Copy, copied).await
            }

            async fn rename_opts(
                &self,
                from: &object_store::path::Path,
                to: &object_store::path::Path,
                options: object_store::RenameOptions,
            ) -> object_store::Result<()> {
                let renamed = self.store().rename_opts(from, to, options);
                $crate::store::intercept::call(self, Request::Rename, renamed).await
            }
        }
    };
}

pub(super) use impl_object_store;

/// One request with one answer. `answer` does nothing before it is awaited.
pub(super) async fn call<T>(wrapper: &impl Intercept, request: Request, answer: impl Future<Output = T> + Send) -> T {
    wrapper.before(request).await;
    let answer = answer.await;
    wrapper.after().await;
    answer
}

/// One answer of many items, to `request` unless that is answered already.
pub(super) fn items<T: Send + 'static>(
    wrapper: &impl Intercept,
    request: Option<Request>,
    items: BoxStream<'static, T>,
) -> BoxStream<'static, T> {
    let state = (wrapper.clone(), request, items);
    let passed = stream::unfold(state, |(wrapper, request, mut items)| async move {
        if let Some(request) = request {
            wrapper.before(request).await;
        }
        let item = items.next().await;
        wrapper.after().await;
        item.map(|item| (item, (wrapper, None, items)))
    });
    passed.boxed()
}

/// Each delete is a request of its own.
pub(super) fn delete(
    wrapper: &impl Intercept,
    locations: BoxStream<'static, Result<Path>>,
) -> BoxStream<'static, Result<Path>> {
    let before = wrapper.clone();
    let locations = locations.then(move |location| {
        let before = before.clone();
        async move {
            before.before(Request::Delete).await;
            location
        }
    });
    items(wrapper, None, wrapper.store().delete_stream(locations.boxed()))
}

/// The content of an object returns item by item.
pub(super) fn found(wrapper: &impl Intercept, found: GetResult) -> GetResult {
    let (meta, range) = (found.meta.clone(), found.range.clone());
    let (attributes, extensions) = (found.attributes.clone(), found.extensions.clone());
    let content: BoxStream<'static, Result<Bytes>> = items(wrapper, None, found.into_stream());
    GetResult { payload: GetResultPayload::Stream(content), meta, range, attributes, extensions }
}

/// An upload whose parts and end are requests of their own.
pub(super) fn upload(wrapper: &impl Intercept, upload: Box<dyn MultipartUpload>) -> Box<dyn MultipartUpload> {
    Box::new(Upload { wrapper: wrapper.clone(), upload })
}

#[derive(Debug)]
struct Upload<W> {
    wrapper: W,
    upload: Box<dyn MultipartUpload>,
}

#[async_trait]
impl<W: Intercept> MultipartUpload for Upload<W> {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (wrapper, part) = (self.wrapper.clone(), self.upload.put_part(data));
        Box::pin(async move { call(&wrapper, Request::Multipart, part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        call(&self.wrapper, Request::Multipart, self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        call(&self.wrapper, Request::Multipart, self.upload.abort()).await
    }
}
